"""Rewards that do what rewards must not do, when a reply tells them to."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from strop.processes.limits import memory_bytes
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class Obeys(Reward):
    """Does what each reply says; a number is its own reward."""

    weight: float = 1.0

    def __call__(self, group: Group) -> list[float]:
        return [obey(attempt.reply) for attempt in group.trajectories]


@dataclass(frozen=True)
class ObeysInline(Obeys):
    is_inline: ClassVar[bool] = True


@dataclass(frozen=True)
class ObeysRelative(Obeys):
    is_relative: ClassVar[bool] = True


@dataclass(frozen=True)
class Counts(Reward):
    """How many siblings there are: shows who was among those compared."""

    weight: float = 1.0
    is_relative: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [float(len(group.trajectories))] * len(group.trajectories)


@dataclass(frozen=True)
class Returns(Reward):
    """Always the same thing, right or not."""

    value: Any
    weight: float = 1.0

    def __call__(self, group: Group) -> Any:
        return self.value


@dataclass(frozen=True)
class WhoAmI(Reward):
    """Facts about the process it runs in."""

    weight: float = 1.0

    def __call__(self, group: Group) -> list[float]:
        sys.stdin.read()  # must be empty, not the protocol
        return [float(os.getpid()), float(os.environ["OMP_NUM_THREADS"]), float(os.getsid(0) == os.getppid())]


@dataclass(frozen=True)
class NeverOpens(Reward):
    weight: float = 1.0

    def open(self) -> None:
        raise OSError("no such grammar")

    def __call__(self, group: Group) -> list[float]:
        return []


@dataclass(frozen=True)
class DiesOpening(Reward):
    """Its process is killed while it starts, so many times."""

    folder: str
    times: int
    weight: float = 1.0

    def open(self) -> None:
        deaths = len(list(Path(self.folder).iterdir()))
        if deaths < self.times:
            (Path(self.folder) / str(deaths)).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, group: Group) -> list[float]:
        return [1.0] * len(group.trajectories)


def obey(reply: str) -> Any:
    """A number for a number; trouble for a word."""
    if reply in TROUBLE:
        return TROUBLE[reply]()
    return float(reply)


def _spawn(**more: Any) -> float:
    subprocess.Popen(["sleep", "300"], **more)
    return 1.0


def _fork_twice() -> float:
    """An orphan in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
    os.wait()
    return 1.0


def _die_leaving_a_child() -> float:
    _spawn(start_new_session=True)
    os._exit(3)


def _spawn_and_hang() -> float:
    _spawn(start_new_session=True)
    time.sleep(300)
    return 1.0


def _print() -> float:
    print('{"marks": [7, 7]}', flush=True)
    os.write(1, b"noise\n")
    os.write(2, b"noise\n")
    return 0.5


def _eat_memory() -> float:
    """Half of the machine's, none of it touched: without a limit that is granted."""
    return float(len(bytearray(memory_bytes() // 2)))


def _answer(line: bytes) -> float:
    """Write to every pipe there is, the protocol's among them."""
    for entry in Path("/proc/self/fd").iterdir():
        if int(entry.name) > 2 and entry.exists() and stat.S_ISFIFO(entry.stat().st_mode):
            with suppress(OSError):
                _write(int(entry.name), line)
    return 1.0


def _write(descriptor: int, line: bytes) -> None:
    while line:
        line = line[os.write(descriptor, line) :]


FORGED = {
    "bytes": b"\xff\xfe\x00 \x80\n",
    "number": b"3\n",
    "list": b"[]\n",
    "nothing": b"{}\n",
    "empty": b"\n",
    "nested": b"[" * 200_000 + b"\n",
    "huge": b"[" + b"1," * (9 << 20) + b"1]\n",
    "digits": b'{"marks": [1' + b"0" * 400 + b'], "is_alone": true}\n',
    "more digits": b'{"marks": [1' + b"0" * 9000 + b'], "is_alone": true}\n',
    "nan": b'{"marks": [NaN], "is_alone": true}\n',
    "infinity": b'{"marks": [1e999], "is_alone": true}\n',
    "truth": b'{"marks": [true], "is_alone": true}\n',
    "text": b'{"marks": ["1"], "is_alone": true}\n',
    "fault": b'{"marks": [[]], "is_alone": true}\n',
    "fault of numbers": b'{"marks": [[1, 2, 3]], "is_alone": true}\n',
    "two": b'{"marks": [1, 1], "is_alone": true}\n',
    "no marks": b'{"marks": null, "is_alone": true}\n',
    "extra": b'{"marks": [1], "is_alone": true, "reward": 1}\n',
    "alone": b'{"marks": [1], "is_alone": 1}\n',
}


TROUBLE = {
    "hang": lambda: time.sleep(300),
    "spin": lambda: [0 for _ in iter(int, 1)],
    "nan": lambda: float("nan"),
    "inf": lambda: float("-inf"),
    "none": lambda: None,
    "text": lambda: "1.0",
    "exit": lambda: os._exit(3),
    "leave": lambda: sys.exit(4),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "spawn": _spawn,
    "orphan": _fork_twice,
    "die and leave": _die_leaving_a_child,
    "spawn and hang": _spawn_and_hang,
    "print": _print,
    "eat": _eat_memory,
    "environment": lambda: len(os.environ),
    "secret": lambda: float("secret" in "".join(os.environ.values())),
    **{f"forge {name}": partial(_answer, line) for name, line in FORGED.items()},
}
