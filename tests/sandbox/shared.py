"""Keys, memory, semaphores and messages outside that attacks aim at, and whether they are as they were."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_ADD_KEY, _KEYCTL = 248, 250
_JOIN, _UNLINK, _SEARCH, _READ = 1, 9, 10, 11
_SESSION, _USER = -3, -4
_MQ_OPEN, _MQ_UNLINK, _MQ_SEND, _MQ_ATTRIBUTES = 240, 241, 242, 245
_GETVAL, _SETVAL = 12, 16
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.shmat.restype = ctypes.c_void_p


def join_session() -> None:
    """A ring of keys of this process and its children."""
    _LIBC.syscall(_KEYCTL, _JOIN, b"strop-campaign")


class Shared:
    """What processes of one machine share by number or name."""

    def __init__(self, token: str, left: str) -> None:
        self._token, self._name, self._left = token.encode(), "strop-" + os.urandom(6).hex(), left
        self._ipc, self._value = random.randrange(1 << 24, 1 << 30), random.randrange(100, 30_000)
        self._key = _LIBC.syscall(_ADD_KEY, b"user", self._name.encode(), self._token, len(token), _SESSION)
        self._named = _LIBC.syscall(_ADD_KEY, b"user", f"{self._name}-{token}".encode(), b"x", 1, _SESSION)
        self._memory = _LIBC.shmget(self._ipc, 4096, 0o1666)
        self._at = ctypes.c_void_p(_LIBC.shmat(self._memory, None, 0))
        ctypes.memmove(self._at, self._token, len(token))
        self._semaphore, self._queue = _LIBC.semget(self._ipc, 1, 0o1666), _LIBC.msgget(self._ipc, 0o1666)
        _LIBC.semctl(self._semaphore, 0, _SETVAL, self._value)
        _LIBC.msgsnd(self._queue, (1).to_bytes(8, "little") + self._token, len(token), 0)
        (Path("/dev/shm") / self._name).write_text(token)
        (Path("/dev/shm") / self._name).chmod(0o666)
        self.known: dict[str, Any] = {"key": self._key, "key_name": self._name, "named_key": self._named}
        self.known |= {"memory_id": self._memory, "semaphore_id": self._semaphore, "semaphore": self._value}
        self.known |= {"queue_id": self._queue, "shared_name": self._name}
        self.known |= {"ipc": self._ipc, "ipc_left": self._ipc + 1}
        self._before = self._state()

    def posted(self, name: str) -> None:
        """A queue by name, with a message in it."""
        queue = _LIBC.syscall(_MQ_OPEN, name.encode(), 0o102, 0o666, None)
        _LIBC.syscall(_MQ_SEND, queue, self._token, len(self._token), 0, None)
        os.close(queue) if queue >= 0 else None
        self._posted = name.encode()

    def changes(self) -> list[str]:
        after = self._state()
        changed = [name for name in after if after[name] != self._before[name]]
        return changed + [f"left {name}" for name in self._leftovers()]

    def close(self) -> None:
        _LIBC.shmdt(self._at)
        _LIBC.shmctl(self._memory, 0, None)
        _LIBC.semctl(self._semaphore, 0, 0)
        _LIBC.msgctl(self._queue, 0, None)
        for key in (self._key, self._named):
            _LIBC.syscall(_KEYCTL, _UNLINK, key, _SESSION)
        _LIBC.syscall(_MQ_UNLINK, self._posted)
        (Path("/dev/shm") / self._name).unlink(missing_ok=True)

    def _state(self) -> dict[str, Any]:
        found: dict[str, Any] = {"memory": ctypes.string_at(self._at, len(self._token))}
        found["semaphore"] = _LIBC.semctl(self._semaphore, 0, _GETVAL)
        rows = Path("/proc/sysvipc/msg").read_text().splitlines()
        found["queue"] = [row.split()[4] for row in rows if row.split()[1] == str(self._queue)]
        found["file"] = (Path("/dev/shm") / self._name).exists() and (Path("/dev/shm") / self._name).read_bytes()
        value, ring = ctypes.create_string_buffer(99), ctypes.create_string_buffer(9999)
        _LIBC.syscall(_KEYCTL, _READ, self._key, value, 99)
        _LIBC.syscall(_KEYCTL, _READ, _SESSION, ring, 9999)
        return found | {"key": value.value, "ring": self._key.to_bytes(4, "little") in ring.raw}

    def _leftovers(self) -> list[str]:
        """What was made anew, and is removed."""
        found = []
        kinds: tuple[tuple[str, int, Callable[[int], Any]], ...] = (
            ("shared memory", _LIBC.shmget(self._ipc + 1, 0, 0), lambda n: _LIBC.shmctl(n, 0, None)),
            ("a semaphore", _LIBC.semget(self._ipc + 1, 0, 0), lambda n: _LIBC.semctl(n, 0, 0)),
            ("a queue", _LIBC.msgget(self._ipc + 1, 0), lambda n: _LIBC.msgctl(n, 0, None)),
        )
        for name, made, removed in kinds:
            if made >= 0:
                removed(made)
                found.append(name)
        found += ["a queue by name"] if _LIBC.syscall(_MQ_UNLINK, self._left.encode()) == 0 else []
        nonce = self._left.removeprefix("strop-")
        for ring, name in ((_SESSION, f"left {nonce}"), (_USER, "strop-left")):
            if (key := _LIBC.syscall(_KEYCTL, _SEARCH, ring, b"user", name.encode(), 0)) > 0:
                _LIBC.syscall(_KEYCTL, _UNLINK, key, ring)
                found.append("a key")
        for place in ("/tmp", "/var/tmp", "/dev/shm"):
            for path in Path(place).glob(self._left + "*"):
                with suppress(OSError):
                    path.unlink()
                found.append(str(path))
        return found
