"""Unprivileged user as which a sandbox started by root runs; it owns nothing on the machine.

Each process has its own user id, derived from its process id, so that files, keys and limits of runs are separate.
"""

from __future__ import annotations

import ctypes
import errno
import os

from strop.sandbox.kernel_isolation.libc import checked, libc, told

_LAST, _SPAN = (1 << 31) - 2, 1 << 22  # of users that systemd leaves unused; as many as there may be processes
_KEYCTL, _JOIN_SESSION_KEYRING = 250, 1


def unused_user() -> int | None:
    """The user for this process; None, where it is not root's and stays who it is."""
    return unused_user_of(unused_users())


def unused_user_of(users: range) -> int | None:
    """That of this process among them."""
    return users[-1 - os.getpid() % len(users)] if users else None


def unused_users() -> range:
    """All users that no process has; none, where this process is not root's."""
    if os.geteuid() != 0:
        return range(0)
    users = [[int(word) for word in line.split()] for line in told("/proc/self/uid_map").splitlines()]
    first, _, count = max(users, key=lambda each: each[2])
    span, last = min(_SPAN, count // 4), min(first + count - 3, _LAST)  # the very last ones often mean: nobody
    if span < 1:
        raise OSError(errno.EPERM, "strop runs as root of a namespace that has no other users")
    return range(last - span + 1, last + 1)


def become(user: int) -> None:
    """For good: no group, no capability, no way back."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def forget_keys() -> None:
    """A session keyring of its own, which is empty."""
    checked(libc().syscall(_KEYCTL, _JOIN_SESSION_KEYRING, ctypes.c_void_p()), "keyctl")
