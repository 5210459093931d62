"""Private mounts, visible only to this process and its children, and gone when they end."""

from __future__ import annotations

import os
from pathlib import Path

from strop.sandbox.kernel_isolation.libc import checked, libc, tell

_NEW_MOUNTS, _NEW_USERS = 0x20000, 0x10000000
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _REMOUNT, _BIND, _DEEP, _PRIVATE = (1 << n for n in (0, 1, 2, 5, 12, 14, 18))
_DETACH = 2
_INODE = 4096  # bytes of memory for each file of a folder that is memory, so that empty ones are bounded too


def own_mounts() -> None:
    """From here on. Who is not root may do so in a user namespace, in which it is who it was."""
    user, group = os.geteuid(), os.getegid()
    checked(libc().unshare(_NEW_MOUNTS | (_NEW_USERS if user else 0)), "a mount namespace")
    if user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            tell(f"/proc/self/{name}", text)
    _mount("none", "/", "", _DEEP | _PRIVATE)


def copy_mounts() -> None:
    """Those that there are, for this process alone; it has some of its own already."""
    checked(libc().unshare(_NEW_MOUNTS), "a mount namespace")


def detach(place: str) -> None:
    """What is mounted here and below, from this view: each mount is copied and listed again by all that follows.

    Only root's are its own to detach; others stay, below what is mounted here next.
    """
    if os.geteuid() == 0:
        libc().umount2(place.encode(), _DETACH)


def mount_memory(place: str, size: int) -> None:
    """A folder of at most `size` bytes, in which only its owner writes."""
    options = f"size={size},nr_inodes={size // _INODE + 64},mode=755"
    _mount("tmpfs", place, "tmpfs", _NO_SETUID | _NO_DEVICES, options)


def opened(path: str) -> int:
    """A handle of a file or folder, which needs no way to it any more."""
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def show(handle: int, place: str) -> None:
    """What a handle stands for, at a place that is made for it."""
    source = f"/proc/self/fd/{handle}"
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    if Path(source).is_dir():
        Path(place).mkdir(exist_ok=True)
    else:
        Path(place).touch()
    _mount(source, place, "", _BIND | _DEEP)


def close_to_writing(place: str) -> None:
    """Of this mount, not of what it shows elsewhere. What it forbids already must be said again."""
    kept = os.statvfs(place).f_flag & os.ST_NOEXEC
    _mount("none", place, "", _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES | kept)


def _mount(source: str, place: str, kind: str, flags: int, options: str = "") -> None:
    result = libc().mount(source.encode(), place.encode(), kind.encode(), flags, options.encode())
    checked(result, f"mount of {place}")
