"""Compilation of the C kernels in this folder, once per machine and source; without a compiler, plain torch is used.

Binaries are cached in a folder of the user. Whenever one is added, those not loaded for a month are removed.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

LANES = 16  # floats of a vector at most, see vectors.h; heads have a multiple of them
# no -ffast-math: sums keep their order, and NaN stays NaN
_FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
_WIDE = "-mprefer-vector-width=512"  # known on x86 only
_SECONDS = 60.0
_UNUSED = 30 * 86400.0  # seconds after which a file is not missed


@cache
def library(name: str, *defined: str) -> ctypes.CDLL | None:
    """The compiled functions of `name`.c, with these names defined in it; None where nothing can compile them."""
    source = Path(__file__).with_name(f"{name}.c")
    if (compiler := compiler_here()) is None:
        return None
    try:
        flags = (*_FLAGS, *(f"-D{each}" for each in defined))
        path = _folder() / f"{_name(compiler, source, flags)}.so"
        if not _is_there(path):
            _compile([compiler, *flags], source, path)
            _empty(path.parent)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):
        return None


def compiler_here() -> str | None:
    return os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def _folder() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strop"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _is_there(path: Path) -> bool:
    """Whether it was compiled before; if so, it counts as loaded now."""
    with suppress(OSError):  # it may belong to somebody else
        os.utime(path)
    return path.is_file()


def _empty(folder: Path) -> None:
    """Delete what other sources, compilers and processors left behind."""
    for path in folder.glob("*-*.so"):
        with suppress(OSError):  # another process may do the same
            if time.time() - path.stat().st_mtime > _UNUSED:
                path.unlink()


def _name(compiler: str, source: Path, flags: Sequence[str]) -> str:
    """Another source, compiler or processor has another file: a home may be shared by several machines."""
    told = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=_SECONDS).stdout
    chosen = map(str.encode, (*flags, *_threads_of_torch(), platform.machine()))
    sources = [path.read_bytes() for path in sorted(source.parent.glob("*.[ch]"))]  # some include others
    parts = (*sources, told, _processor(), *chosen)
    return f"{source.stem}-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]}"


def _processor() -> bytes:
    path = Path("/proc/cpuinfo")
    lines = path.read_bytes().splitlines() if path.is_file() else [platform.processor().encode()]
    return next((line for line in lines if line.startswith((b"flags", b"Features"))), lines[0])


def _compile(asked: Sequence[str], source: Path, path: Path) -> None:
    """Into a file of its own first: another process may be loading or making the same."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        wide = [_WIDE] if platform.machine() == "x86_64" else []
        threads = ["-fopenmp", *_threads_of_torch()]
        for extra in ([*wide, *threads], []):
            command = [*asked, *extra, str(source), "-o", str(made), "-lm"]
            if subprocess.run(command, capture_output=True, timeout=_SECONDS).returncode == 0:
                made.rename(path)
                return
    raise OSError(f"{asked[0]} cannot compile {source}")


def _threads_of_torch() -> list[str]:
    """The runtime of threads that torch brought along: a second one would have threads of its own on the same cores."""
    import torch

    return [str(path) for path in (Path(torch.__file__).parent / "lib").glob("libgomp*.so*")]
