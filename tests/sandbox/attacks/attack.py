"""Hostile program as data, and what every one of them finds when it begins.

A program is told names of things outside (paths, ports, numbers of processes and keys) as its global names, and one
word of the run, `nonce`. It is never told a secret. `won()` says that the kernel granted what the program asked for;
`tell()` prints what was read. Whether it won is decided outside: see `outside.Outside.breaches`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

PRELUDE = """
import json, sys
globals().update(json.loads(sys.stdin.readline()))
def won(is_won=True):
    if is_won:
        print("WON", nonce, flush=True)
def tell(data):
    print(ascii(data), flush=True)
"""
# system calls by number: what needs no module can be tried in every kind of isolation
CALLS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    ctypes.set_errno(0)
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return libc.syscall(ctypes.c_long(number), *wide)
def bits(size, data=b""):
    return ctypes.create_string_buffer(data, size)
def reached(result):
    won(result >= 0 or ctypes.get_errno() not in (1, 13, 38))
def pack(form, *values):
    import struct
    return struct.pack(form, *values)
"""


class Against(enum.Flag):
    """The sandboxes in which a win is a breach: some things are allowed in one of them."""

    PYTHON = enum.auto()  # Python programs, in both kinds of isolation
    COMMANDS = enum.auto()  # shells and programs
    BOTH = PYTHON | COMMANDS


class Control(enum.Enum):
    """What runs a program without isolation, to see whether it can win at all."""

    BARE = "bare"  # a process that inherits whatever there is
    NAIVE = "naive"  # one interpreter for all programs, which answers on the pipe that they print on
    WRAPPED = "wrapped"  # a process whose parent reports how it ended


@dataclass(frozen=True)
class Attack:
    """One way to break out, and where a win of it counts."""

    name: str
    family: str
    program: str
    against: Against = Against.BOTH
    is_shell: bool = False
    control: Control = Control.BARE
    has_folder: bool = False  # it is given a folder of its own
    seconds: float = 4.0
    memory: int = 96 << 20
    output: int = 1 << 20

    @property
    def key(self) -> str:
        return f"{self.family}: {self.name}"

    @property
    def text(self) -> str:
        return PRELUDE + (CALLS if "call(" in self.program or "libc" in self.program else "") + self.program


def python(family: str, against: Against, programs: Sequence[tuple[str, str]], **more: object) -> tuple[Attack, ...]:
    """Attacks of one family in Python."""
    return tuple(Attack(name, family, program, against, **more) for name, program in programs)  # type: ignore[arg-type]


def shell(family: str, programs: Sequence[tuple[str, str]], **more: object) -> tuple[Attack, ...]:
    """Attacks of one family that a shell makes."""
    return tuple(
        Attack(name, family, program, Against.COMMANDS, is_shell=True, **more)  # type: ignore[arg-type]
        for name, program in programs
    )
