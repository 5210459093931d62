"""Rewards that do what rewards must not do, when a completion tells them to."""

from __future__ import annotations

import os
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from strop.roles import Reward
from strop.types import Group
from strop.workers.frames import encode
from strop.workers.limits import memory_bytes


@dataclass(frozen=True)
class Obeys(Reward):
    """Does what each completion says; a number is its own reward."""

    weight: float = 1.0

    def __call__(self, group: Group) -> list[float]:
        return [obey(rollout.completion) for rollout in group.rollouts]


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
        return [float(len(group.rollouts))] * len(group.rollouts)


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

    def open_resources(self) -> None:
        raise OSError("no such grammar")

    def __call__(self, group: Group) -> list[float]:
        return []


@dataclass(frozen=True)
class DiesOpening(Reward):
    """Its process is killed while it starts, so many times."""

    folder: str
    times: int
    weight: float = 1.0

    def open_resources(self) -> None:
        deaths = len(list(Path(self.folder).iterdir()))
        if deaths < self.times:
            (Path(self.folder) / str(deaths)).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, group: Group) -> list[float]:
        return [1.0] * len(group.rollouts)


def obey(completion: str) -> Any:
    """A number for a number; trouble for a word."""
    if completion in TROUBLE:
        return TROUBLE[completion]()
    return float(completion)


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
    print('{"scores": [7, 7]}', flush=True)
    os.write(1, b"noise\n")
    os.write(2, b"noise\n")
    return 0.5


def _eat_memory() -> float:
    """Half of the machine's, none of it touched: without a limit that is granted."""
    return float(len(bytearray(memory_bytes() // 2)))


def _write_gigabytes() -> float:
    """One byte behind the second gigabyte: without a limit that is granted, and takes no room."""
    with tempfile.TemporaryFile() as file:
        file.seek(2 << 30)
        return float(file.write(b"1"))


def _flood() -> float:
    for _ in range(256):
        os.write(1, b"x" * (1 << 20))
    return 0.5


def forge(name: str, number: int) -> float:
    """Write to every pipe there is, the conversation's among them; a worker's first group is question 2."""
    line = FORGED.get(name, HONEST)(number)
    for entry in Path("/proc/self/fd").iterdir():
        if int(entry.name) > 2 and entry.exists() and stat.S_ISFIFO(entry.stat().st_mode):
            with suppress(OSError):
                _write(int(entry.name), line)
    return 1.0


def _write(descriptor: int, line: bytes) -> None:
    os.set_blocking(descriptor, True)
    while line:
        line = line[os.write(descriptor, line) :]


def _raw(text: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">IQ", len(text), len(body)) + text + body


def _saying(number: int, **head: Any) -> bytes:
    return encode({"id": number, "facts": [{}], "counts": [], **head}, {})


def _scores(plain: Any) -> Callable[[int], bytes]:
    return lambda number: _saying(number, scores=plain, is_alone=True)


def _facts(plain: Any) -> Callable[[int], bytes]:
    return lambda number: _saying(number, scores=[1], facts=plain, is_alone=True)


def _deep(levels: int) -> Callable[[int], bytes]:
    text = b"[" * levels + b"]" * levels
    return lambda number: _raw(
        f'[{{"id": {number}, "facts": [{{}}], "counts": [], "is_alone": true, "scores": '.encode() + text + b"}, []]"
    )


# by the number of the question that they pretend to answer
FORGED: dict[str, Callable[[int], bytes]] = {
    "bytes": lambda number: b"\xff\xfe\x00 \x80\n" * 9,
    "number": lambda number: _raw(b"3"),
    "list": lambda number: _raw(b"[]"),
    "nothing": lambda number: _raw(b""),
    "nested": lambda number: _raw(b"[" * 200_000),
    "huge": lambda number: _raw(b"[" + b"1," * (9 << 20) + b"1]"),
    "objects": lambda number: _raw(b'[{}, [["x", "O", [1]]]]', b"12345678"),
    "layout": lambda number: _raw(b'[{}, [["x", "f4", [9, -1]]]]', b"12345678"),
    "no dtype": lambda number: _raw(b'[{}, [["x", "f4,(", [2]]]]', b"12345678"),
    "leftover": lambda number: _raw(
        f'[{{"id": {number}, "scores": [1], "facts": [{{}}], "counts": [], "is_alone": true}}, []]'.encode(), b"12"
    ),
    "other": lambda number: _saying(number + 1, scores=[1], is_alone=True),
    "twice": lambda number: 2 * _saying(number, scores=[[]], is_alone=True),
    "digits": _scores([10**400]),
    "longer": lambda number: _raw(
        b'[{"scores": [1' + b"0" * 9000 + b'], "facts": [{}], "counts": [], "is_alone": true}, []]'
    ),
    "deep": _deep(900),
    "nan": _scores([float("nan")]),
    "infinity": _scores([float("inf")]),
    "truth": _scores([True]),
    "text": _scores(["1"]),
    "fault": _scores([[]]),
    "faults": _scores([[1, 2, 3]]),
    "two": _scores([1, 1]),
    "no scores": _scores(None),
    "paid text": _scores([{"end": "1", "spans": []}]),
    "paid more": _scores([{"end": 1.0, "spans": [], "bonus": 1.0}]),
    "paid nan": _scores([{"end": 1.0, "spans": [[0, 0, 1, float("nan"), 0.0, ""]]}]),
    "paid half": _scores([{"end": 1.0, "spans": [[0, 0.5, 1, 1.0, 0.0, ""]]}]),
    "extra": lambda number: _saying(number, scores=[1], is_alone=True, reward=1),
    "alone": lambda number: _saying(number, scores=[1], is_alone=1),
    "no facts": _facts(None),
    "fact nested": _facts([{"share": {"share": 1}}]),
    "success beyond 1": _facts([{"success": 1.5}]),
}
HONEST = _scores([0.25])  # nothing is wrong with it: the others fail for what they are named after


TROUBLE: dict[str, Callable[[], Any]] = {
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
    "write": _write_gigabytes,
    "flood": _flood,
    "episode": lambda: len(os.environ),
    "secret": lambda: float("secret" in "".join(os.environ.values())),
    **{f"forge {name}": partial(forge, name, 2) for name in (*FORGED, "honest")},
}
