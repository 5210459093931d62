"""A seccomp filter: what a program that computes and prints may ask of the kernel, and nothing else.

Everything that is not on the list fails with EPERM, so that a program gets an exception that it can show. Only x86-64
is known: its numbers are in the kernel's arch/x86/entry/syscalls/syscall_64.tbl.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from collections.abc import Sequence

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ARCHITECTURE = 0xC000003E  # AUDIT_ARCH_X86_64
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_KILL, _FAIL, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # where they are in what the filter is shown

# memory, what is open already, signals of its own, clocks, chance, its own end
_COMPUTING = {
    **{"read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11},
    **{"brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17, "readv": 19},
    **{"writev": 20, "select": 23, "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "pause": 34},
    **{"nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "exit": 60, "gettimeofday": 96},
    **{"getrlimit": 97, "getrusage": 98, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108},
    **{"getppid": 110, "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204},
    **{"clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "pselect6": 270},
    **{"ppoll": 271, "getrandom": 318, "rseq": 334},
}
# files by name, which another wall must bound
_READING = {
    **{"open": 2, "stat": 4, "lstat": 6, "access": 21, "getcwd": 79, "readlink": 89, "getdents64": 217, "openat": 257},
    **{"newfstatat": 262, "readlinkat": 267, "faccessat": 269, "statx": 332, "faccessat2": 439},
}
_WRITING = {
    **{"ftruncate": 77, "chdir": 80, "rename": 82, "mkdir": 83, "rmdir": 84, "unlink": 87, "mkdirat": 258},
    **{"unlinkat": 263, "renameat": 264, "renameat2": 316},
}
# allowed where the argument of that number is one of those; else this error
_IF = {
    16: (1, (0x5401, 0x5450, 0x5451), errno.ENOTTY),  # ioctl: is it a terminal; close on exec or not
    72: (1, (0, 1, 2, 3, 1030), errno.EPERM),  # fcntl: copies and flags; no signals, no locks, no pipes' sizes
    302: (2, (0,), errno.EPERM),  # prlimit64: read limits, set none
}
_MISSING = (435, 437)  # clone3, openat2: libraries fall back on the older ones, which the filter knows
_Rule = tuple[int, int, int, int]


def is_known() -> bool:
    """Whether this machine's calls are known by number."""
    return platform.machine() == "x86_64"


def restrict(may_read: bool, may_write: bool) -> None:
    """Nothing but these calls from here on, for this process and all it starts; needs no_new_privs."""
    allowed = _COMPUTING | (_READING if may_read else {}) | (_WRITING if may_write else {})
    rules = _filter(sorted(allowed.values()))
    table = (_Instruction * len(rules))(*(_Instruction(*rule) for rule in rules))
    program = _Program(len(rules), table)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def _filter(allowed: Sequence[int]) -> list[_Rule]:
    """Jumps are relative and short, so every test is followed by its own answer."""
    rules = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, _ARCHITECTURE), (_RETURN, 0, 0, _KILL)]
    rules += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    for number in allowed:
        rules += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for number in _MISSING:
        rules += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    for number, (argument, values, error) in _IF.items():
        tests = _tests(argument, values, error)
        rules += [(_EQUAL, 0, len(tests), number), *tests]
    return [*rules, (_RETURN, 0, 0, _FAIL | errno.EPERM)]


def _tests(argument: int, values: Sequence[int], error: int) -> list[_Rule]:
    """All 64 bits of an argument, low half first; the kernel reads no more than it means to of some, we do."""
    low, high = _ARGUMENTS + 8 * argument, _ARGUMENTS + 8 * argument + 4
    rules = [(_LOAD, 0, 0, high), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _FAIL | error), (_LOAD, 0, 0, low)]
    for value in values:
        rules += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [*rules, (_RETURN, 0, 0, _FAIL | error)]


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("rules", ctypes.POINTER(_Instruction)))
