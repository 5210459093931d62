"""Seccomp filters: the system calls that a process and its children may make.

A refused call fails with an error, so that a program gets an exception; calls of another ABI (32 bits, x32) kill it.
Only x86-64 is supported.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

from strop.sandbox.kernel_isolation.libc import checked, libc
from strop.sandbox.kernel_isolation.syscalls import (
    ABSENT,
    ALL_KINDS_IF,
    COMPUTING,
    COMPUTING_IF,
    DENIED,
    MISSING,
    READING,
    SENDING,
    WRITING,
    WRITING_IF,
    Argument,
)

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ARCHITECTURE = 0xC000003E  # AUDIT_ARCH_X86_64
_X32 = 0x40000000
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_KILL, _FAIL, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # where they are in what the filter is shown
_FEW = 6  # numbers that are looked for one after the other
_RULE = struct.Struct("=HBBI")  # struct sock_filter
_Rule = tuple[int, int, int, int]


def is_known() -> bool:
    """Whether this machine's calls are known by number."""
    return platform.machine() == "x86_64"


@cache
def computing(may_read: bool, may_write: bool) -> bytes:
    """The filter for a program that computes and prints: nothing but these calls."""
    allowed = COMPUTING | (READING if may_read else {}) | (WRITING if may_write else {})
    answers = dict.fromkeys(allowed.values(), _ALLOW) | dict.fromkeys(ABSENT.values(), _FAIL | errno.ENOSYS)
    return _filter(answers, COMPUTING_IF | (WRITING_IF if may_write else {}), _FAIL | errno.EPERM)


@cache
def all_kinds(may_send: bool) -> bytes:
    """The filter for shells and programs of all kinds: all calls but those that reach out of a sandbox."""
    denied = DENIED if may_send else DENIED | SENDING
    answers = dict.fromkeys(denied.values(), _FAIL | errno.EPERM)
    return _filter(answers | dict.fromkeys(MISSING.values(), _FAIL | errno.ENOSYS), ALL_KINDS_IF, _ALLOW)


def restrict(rules: bytes) -> None:
    """Only what the filter lets through, from here on; needs no_new_privs."""
    table = ctypes.create_string_buffer(rules, len(rules))
    program = _Program(len(rules) // _RULE.size, ctypes.cast(table, ctypes.c_void_p))
    checked(libc().prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0), "seccomp")


def _filter(answers: Mapping[int, int], tested: Mapping[int, tuple[Argument, ...]], else_: int) -> bytes:
    """A tree of numbers: the kernel tries a new filter with every call that there is, and more with each call later."""
    rules: list[_Rule] = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, _ARCHITECTURE), (_RETURN, 0, 0, _KILL)]
    rules += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    rules += _tree(sorted(answers.keys() | tested.keys()), answers, tested, else_)
    return b"".join(_RULE.pack(*rule) for rule in rules)


def _tree(
    numbers: Sequence[int], answers: Mapping[int, int], tested: Mapping[int, tuple[Argument, ...]], else_: int
) -> list[_Rule]:
    """Halves, down to a few numbers. Jumps are relative and short, so tests are followed by their own answer."""
    if len(numbers) > _FEW:
        middle = len(numbers) // 2
        below, above = (_tree(half, answers, tested, else_) for half in (numbers[:middle], numbers[middle:]))
        return [(_AT_LEAST, len(below), 0, numbers[middle]), *below, *above]
    rules, alike = list[_Rule](), defaultdict[int, list[int]](list)
    for number in numbers:
        if number not in tested:
            alike[answers[number]].append(number)
            continue
        tests = [rule for argument in tested[number] for rule in _tests(argument)] + [(_RETURN, 0, 0, _ALLOW)]
        rules += [(_EQUAL, 0, len(tests), number), *tests]
    for answer, same in alike.items():
        rules += [(_EQUAL, len(same) - place, 0, number) for place, number in enumerate(same, 1)]
        rules[-1] = (_EQUAL, 0, 1, same[-1])
        rules.append((_RETURN, 0, 0, answer))
    return [*rules, (_RETURN, 0, 0, else_)]


def _tests(argument: Argument) -> list[_Rule]:
    """Falls through where the argument may be so. What may be is all 64 bits; what may not, those the kernel reads."""
    low, high = _ARGUMENTS + 8 * argument.place, _ARGUMENTS + 8 * argument.place + 4
    fails = (_RETURN, 0, 0, _FAIL | argument.error)
    if not argument.is_allowed:
        test = _ANY_BIT if argument.are_bits else _EQUAL
        return [(_LOAD, 0, 0, low), *(rule for value in argument.values for rule in ((test, 0, 1, value), fails))]
    rules: list[_Rule] = [(_LOAD, 0, 0, high), (_EQUAL, 1, 0, 0), fails, (_LOAD, 0, 0, low)]
    left = len(argument.values)
    return [*rules, *((_EQUAL, left - place, 0, value) for place, value in enumerate(argument.values)), fails]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("rules", ctypes.c_void_p))
