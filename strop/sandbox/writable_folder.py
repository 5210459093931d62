"""Folder that a sandbox may write to during a run, with the disk space added to it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_DEEPEST = 100  # folders in folders; a program that goes deeper is taken for one that fills the disk
_ENTRY = 4096  # bytes of disk that an empty file or folder takes at least
_BLOCK = 512  # bytes in which the kernel counts
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_Owner = tuple[int, int]


class HiddenError(OSError):
    """Contents of a folder that cannot be determined: endless nesting, or an unreadable folder."""


@dataclass
class WritableFolder:
    """Writable folder and its contents; accessed by directory handles only, because a program may replace paths by
    links.
    """

    path: str
    device: int = field(init=False)
    _taken: int = field(init=False)  # bytes, before
    _owner: _Owner = field(init=False)  # of what is new
    _owners: dict[int, _Owner] = field(default_factory=dict, init=False)  # by inode

    def __post_init__(self) -> None:
        found = Path(self.path).stat()
        self.device, self._owner, self._taken = found.st_dev, (found.st_uid, found.st_gid), 0
        for _, _, each in self._entries():
            self._owners[each.st_ino] = (each.st_uid, each.st_gid)
            self._taken += _size(each)

    def give(self, user: int) -> None:
        """All that is in it, and the folder, to a user; set-user-ID bits go away with that."""
        for where, name, _ in self._entries():
            os.chown(name, user, user, dir_fd=where, follow_symlinks=False)
        os.chown(self.path, user, user)

    def take_back(self) -> None:
        """To those who had it; what is new, to the owner of the folder."""
        with suppress(HiddenError):
            for where, name, each in self._entries():
                owner = self._owners.get(each.st_ino, self._owner)
                os.chown(name, *owner, dir_fd=where, follow_symlinks=False)
        os.chown(self.path, *self._owner)

    def added(self, most: int) -> int:
        """Bytes of disk beyond those that were taken; it is not counted on where there are more than `most`."""
        size = -self._taken
        try:
            for _, _, each in self._entries():
                size += _size(each)
                if size > most:
                    break
        except HiddenError:
            return most + 1
        return size

    def _entries(self) -> Iterator[tuple[int, str, os.stat_result]]:
        top = os.open(self.path, _OPEN & ~os.O_NOFOLLOW)
        try:
            yield from _below(top, _DEEPEST)
        finally:
            os.close(top)


def _size(entry: os.stat_result) -> int:
    return max(entry.st_blocks * _BLOCK, _ENTRY)


def _below(folder: int, depth: int) -> Iterator[tuple[int, str, os.stat_result]]:
    """Each with the handle of the folder that it is in."""
    if not depth:
        raise HiddenError(errno.ELOOP, f"more than {_DEEPEST} folders in folders")
    for name in os.listdir(folder):
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue  # gone since
        yield folder, name, found
        if stat.S_ISDIR(found.st_mode):
            try:
                inner = os.open(name, _OPEN, dir_fd=folder)
            except PermissionError as error:
                raise HiddenError(error.errno, f"a folder {name} that may not be looked into") from error
            except OSError:
                continue  # no folder any more
            try:
                yield from _below(inner, depth - 1)
            finally:
                os.close(inner)
