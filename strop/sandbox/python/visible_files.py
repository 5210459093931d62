"""Files visible to a Python program in the sandbox: the standard library and the libraries it loads.

A warm interpreter mounts them once, and each forked process enters that mount: names, sizes and links of other files
cannot be read, because they are not there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from strop.sandbox.kernel_isolation.mounts import close_to_writing, copy_mounts, mount_memory, opened, own_mounts, show
from strop.sandbox.kernel_isolation.unprivileged_user import forget_keys
from strop.sandbox.layout import HOME, PLACE
from strop.sandbox.writable_folder import WritableFolder

_SIZE = 1 << 20  # bytes, for the folders that lead to what is shown
_LIBRARIES = (*("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"),)
_LINKS = ("/lib", "/lib64")
_INSTALLED = ("site-packages", "dist-packages")  # by whoever uses the interpreter


@dataclass(frozen=True)
class PythonView:
    """Readable folders, and those in them that are shown empty."""

    readable: tuple[str, ...]
    empty: tuple[str, ...]

    def lay_out(self) -> None:
        """From here on this process has mounts of its own, and the view among them."""
        own_mounts()
        handles = {path: opened(path) for path in self.readable}
        mount_memory(PLACE, _SIZE)
        nothing = Path(PLACE, "nothing")
        for folder in (nothing, Path(PLACE + HOME)):
            folder.mkdir(parents=True)
        for link in map(Path, _LINKS):
            if link.is_symlink():
                Path(f"{PLACE}{link}").symlink_to(link.readlink())
        for path, handle in handles.items():
            show(handle, PLACE + path)
            os.close(handle)
        for path in self.empty:
            handle = opened(str(nothing))
            show(handle, PLACE + path)
            os.close(handle)
        for path in (*self.empty, *self.readable, ""):
            close_to_writing(PLACE + path)
        forget_keys()


def enter(writable: WritableFolder | None) -> None:
    """See nothing else from here on; what is writable is home. Whoever may call `chroot` may leave again."""
    if writable is not None:
        copy_mounts()
        handle = opened(writable.path)
        show(handle, PLACE + HOME)
        os.close(handle)
    os.chroot(PLACE)
    os.chdir(HOME if writable is not None else "/")


@cache
def standard() -> PythonView:
    """Of the interpreter that runs this."""
    libraries = (str(Path(path).resolve()) for path in _LIBRARIES if Path(path, "libc.so.6").exists())
    readable = tuple(dict.fromkeys(path for path in (*paths(), *libraries) if Path(path).is_dir()))
    inner = [folder for path in map(Path, readable) for folder in (path, *path.glob("python3*"))]
    installed = (folder / name for folder in inner for name in _INSTALLED)
    return PythonView(readable, tuple(str(folder) for folder in installed if folder.is_dir()))


@cache
def paths() -> tuple[str, str]:
    """Where a program finds modules: the interpreter's own, and nobody else's."""
    own = Path(os.__file__).parent
    return str(own), str(sysconfig.get_config_var("DESTSHARED") or own / "lib-dynload")


@cache
def problem() -> str:
    """Why no view can be laid out here; nothing, if one can."""
    code = (
        "import sys; sys.path.append(sys.argv[1]); "
        "from strop.sandbox.python.visible_files import standard; standard().lay_out()"
    )
    root = str(Path(__file__).parents[3])
    done = subprocess.run([sys.executable, "-s", "-P", "-B", "-c", code, root], capture_output=True, text=True)
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""
