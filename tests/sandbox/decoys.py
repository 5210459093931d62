"""Files and a process outside that attacks aim at, and whether they are as they were."""

from __future__ import annotations

import ctypes
import hashlib
import os
import random
import sqlite3
import stat
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

_IOPRIO_GET = 252
_ENTRY = 4096  # bytes that an empty file or folder counts for
_DECOY = """
import ctypes, os, resource, signal, sys, time
ctypes.CDLL(None).prctl(1, 9)
word = ctypes.create_string_buffer(os.environ["STROP_CANARY"].encode(), 8192)
descriptor = os.open("secret", os.O_RDWR)
for number in range(1, 32):
    if number not in (9, 17, 18, 19):
        signal.signal(number, lambda *_: os.write(1, b"!"))
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
print(os.getpid(), descriptor, ctypes.addressof(word), flush=True)
while True:
    time.sleep(60)
"""


class Canaries:
    """A folder that anybody may read and change, so that nothing but isolation protects it."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder, self.own = folder, folder / "own"
        secret = folder / "secret"
        secret.write_text(f"{token}\n")
        for name in ("names", "empty", "home", "home/.ssh", "own"):
            (folder / name).mkdir()
        (folder / "names" / token).touch()
        (folder / "home/.ssh/id").write_text(token)
        (folder / "home/.netrc").write_text(token)
        (folder / "canary.py").write_text(f"print('{token}')\n")
        (folder / "script").write_text(f"#!/bin/sh\necho {token}\n")
        (folder / "link").symlink_to(f"/nowhere/{token}")
        with zipfile.ZipFile(folder / "archive", "w") as archive:
            archive.writestr("a", token)
        with sqlite3.connect(folder / "base") as base:
            base.execute("create table t (a)")
            base.execute("insert into t values (?)", (token,))
        base.close()
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o777 if path.is_dir() or path.name == "script" else 0o666)
        with suppress(OSError):
            os.setxattr(secret, "user.word", token.encode())
        self.known = {"secret": str(secret), "folder": str(folder), "home": str(folder / "home")}
        self.known |= {
            "handle": _handle(secret),
            "source": str(Path(__file__).parents[2] / "strop/sandbox/execution.py"),
        }
        self.remember()

    def remember(self) -> None:
        """From now on it is to stay as it is."""
        self._before = self._state()

    def changes(self) -> list[str]:
        after = self._state()
        return sorted(name for name in {*after, *self._before} if after.get(name) != self._before.get(name))

    def left_in_own(self, most: int, is_ended: bool) -> list[str]:
        """What its own folder must not hold: too much, or what gives rights to others.

        Whoever was ended for it may have added more until somebody looked, but not all that attacks mean to add.
        """
        try:
            found = [path.lstat() for path in self.own.rglob("*")]
        except (OSError, RecursionError) as error:
            return [f"nobody walks or removes it: {type(error).__name__}"]
        size = sum(max(each.st_blocks * 512, _ENTRY) for each in found)
        wrong = [f"{size >> 20} MB on disk with {most >> 20} allowed"] if size > (4 if is_ended else 2) * most else []
        rights = [each for each in found if each.st_mode & stat.S_ISUID and each.st_uid == 0]
        wrong += ["a set-user-ID program of root"] if rights else []
        wrong += ["a device"] if any(stat.S_ISCHR(each.st_mode) or stat.S_ISBLK(each.st_mode) for each in found) else []
        wrong += ["a file of another user"] if any(each.st_uid == 12345 for each in found) else []
        if any("security.capability" in _attributes(path) for path in self.own.rglob("*")):
            wrong.append("a program with capabilities")
        return wrong

    def _state(self) -> dict[str, object]:
        paths = [path for path in self.folder.iterdir() if path.name != "own"]
        paths += [below for path in paths if path.is_dir() and not path.is_symlink() for below in path.rglob("*")]
        return {str(path.relative_to(self.folder)): _looks(path) for path in paths}


def _looks(path: Path) -> object:
    found = path.lstat()
    text = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
    return (found.st_mode, found.st_uid, found.st_gid, found.st_ctime_ns, found.st_nlink, text, _attributes(path))


def _attributes(path: Path) -> list[str]:
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:
        return []


def _handle(path: Path) -> str:
    """By which the kernel opens a file for whoever may do so: what it is called is not needed."""
    handle, mount = ctypes.create_string_buffer(136), ctypes.c_int()
    ctypes.memmove(handle, (128).to_bytes(4, "little"), 4)
    ctypes.CDLL(None).syscall(303, -100, str(path).encode(), handle, ctypes.byref(mount), 0)
    return handle.raw.hex()


def packages() -> dict[str, str]:
    """Packages that lie beside the interpreter, and one of them."""
    own = Path(os.__file__).parent
    places = [
        own / "site-packages",
        own.parent / "python3/dist-packages",
        own.parent.parent / "lib/python3/dist-packages",
    ]
    for place in places:
        for path in sorted(place.glob("[a-z]*/__init__.py")):
            if path.stat().st_size:
                names = {"packages": str(place), "package": str(path), "package_name": path.parent.name}
                return names | {"root": str(Path(__file__).parents[2])}
    return {"packages": "/nowhere", "package": "/nowhere", "package_name": "nowhere", "root": "/nowhere"}


def digest(nonce: str, path: str) -> str:
    """What only a reader of the file can say."""
    with suppress(OSError):
        return hashlib.sha256(nonce.encode() + Path(path).read_bytes()).hexdigest()
    return hashlib.sha256(random.randbytes(16)).hexdigest()


class Decoy:
    """A process of the same user that sleeps, with a secret in its memory, environment and an open file."""

    def __init__(self, folder: Path, token: str) -> None:
        files = random.randrange(200, 900)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _DECOY, str(files)],
            cwd=folder,
            env={"STROP_CANARY": token},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        pid, descriptor, address = (int(word) for word in self.process.stdout.readline().split())
        os.set_blocking(self.process.stdout.fileno(), False)
        self._address, self._token = address, token
        self.known = {"decoy": pid, "descriptor": descriptor, "address": address, "files": files}
        self._before = self._state()

    def changes(self) -> list[str]:
        if self.process.poll() is not None:
            return ["ended"]
        after = self._state()
        return [name for name in after if after[name] != self._before[name]]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _state(self) -> dict[str, Any]:
        pid, files = self.process.pid, Path("/proc") / str(self.process.pid)
        assert self.process.stdout is not None
        try:
            names = ("comm", "oom_score_adj", "coredump_filter", "timerslack_ns", "limits")
            found: dict[str, Any] = {name: (files / name).read_text() for name in names}
            fields = (files / "stat").read_text().rpartition(")")[2].split()
            with (files / "mem").open("rb", 0) as memory:
                memory.seek(self._address)
                found["memory"] = memory.read(len(self._token))
            found |= {"stopped": fields[0] in "Tt", "nice": fields[16], "policy": fields[38]}
            found["cores"], found["disk"] = os.sched_getaffinity(pid), ctypes.CDLL(None).syscall(_IOPRIO_GET, 1, pid)
            return found | {"signals": self.process.stdout.read() or b""}
        except (OSError, IndexError) as error:
            return {"state": str(error)}
