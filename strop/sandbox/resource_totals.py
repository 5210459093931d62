"""Resource use of all processes of a sandbox together: number of processes, memory, disk space.

The processes are those of its PID namespace, as listed in its own /proc, so none escapes by leaving its parent. Memory
includes private and shared memory, tmpfs folders, deleted files that are still open, and buffers of pipes and sockets.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from strop.sandbox.execution import MOST_PROCESSES, Ending
from strop.sandbox.writable_folder import WritableFolder

_PIPE, _SOCKET = 1 << 16, 416 << 10  # bytes that one may hold: of a socket, twice what the kernel lets it ask for
_BLOCK, _INODE = 512, 1024
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PIPES, _SOCKETS = -1, -2  # where they are, in place of a device
_Key = tuple[int, int]  # device and inode


@dataclass
class Totals:
    """Resource use of the sandbox whose first process is `first`, at one time."""

    first: int  # its id out here
    memory: int  # bytes, and of disk as many
    writable: WritableFolder | None = None
    _root: int = field(init=False)
    _processes: str = field(init=False)

    def __post_init__(self) -> None:
        self._root = os.open(f"/proc/{self.first}/root", os.O_PATH | os.O_CLOEXEC)
        self._processes = f"/proc/self/fd/{self._root}/proc"

    def stands(self) -> bool:
        """Whether its processes are those listed: we are not among them."""
        return Path(self._processes, "1").exists() and not Path(self._processes, "self").exists()

    def __enter__(self) -> Totals:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def passed(self) -> Ending | None:
        """Which of them is more than may be taken."""
        found = [Process(f"{self._processes}/{name}") for name in _listed(self._processes) if name.isdigit()]
        if sum(each.tasks() for each in found) > MOST_PROCESSES:
            return Ending.PROCESSES
        held = {key: size for each in found for key, size in each.holds()} | self._sockets()
        device = self.writable.device if self.writable is not None else 0
        if self.writable is not None and fills(self.writable, self.memory, held.items()):
            return Ending.DISK
        folder = f"/proc/self/fd/{self._root}/tmp"
        elsewhere = (device, Path(folder).stat().st_dev)
        left = self.memory - _in_memory(folder) - sum(n for (where, _), n in held.items() if where not in elsewhere)
        if sum(each.at_most() for each in found) <= left:
            return None
        return Ending.MEMORY if sum(each.memory() for each in found) > left else None

    def _sockets(self) -> dict[_Key, int]:
        """Those of the machine that are there, also ones that no process has open: on their way through another."""
        lines = Path(self._processes, "1", "net", "unix").read_text(errors="replace").splitlines()[1:]
        return {(_SOCKETS, int(line.split()[6])): _SOCKET for line in lines}


def fills(writable: WritableFolder, most: int, held: Iterable[tuple[_Key, int]]) -> bool:
    """Whether more is added to a folder, or held of it without a name, than may be."""
    left = most - sum(size for (where, _), size in dict(held).items() if where == writable.device)
    return writable.added(left) > left


def _listed(folder: str) -> list[str]:
    with os.scandir(folder) as found:
        return [each.name for each in found]


def _in_memory(folder: str) -> int:
    """Of all folders that are memory together: they are one."""
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize + (found.f_files - found.f_ffree) * _INODE


@dataclass(frozen=True)
class Process:
    """Resource use of one process; zero if it ends during the measurement."""

    place: str

    def tasks(self) -> int:
        with suppress(OSError):
            return Path(self.place, "task").stat().st_nlink - 2
        return 0

    def at_most(self) -> int:
        """Bytes of memory that are no file's; what is shared with a parent counts for both."""
        with suppress(OSError):
            resident, shared = Path(self.place, "statm").read_text().split()[1:3]
            return (int(resident) - int(shared)) * _PAGE
        return 0

    def memory(self) -> int:
        """The same; what is shared is divided among those who share it."""
        with suppress(OSError):
            lines = (line.split() for line in Path(self.place, "smaps_rollup").read_text().splitlines()[1:])
            found = {name: int(size) << 10 for name, size, _ in lines}
            return found.get("Pss_Anon:", found["Pss:"]) + found.get("SwapPss:", 0)
        return 0

    def holds(self) -> Iterator[tuple[_Key, int]]:
        """Bytes that no folder shows: pipes, sockets, files without a name that are open or mapped."""
        with suppress(OSError):
            for name in _listed(f"{self.place}/fd"):
                with suppress(OSError):
                    yield from _held(Path(self.place, "fd", name).stat())
        with suppress(OSError):
            for line in Path(self.place, "maps").read_text(errors="replace").splitlines():
                if line.endswith(" (deleted)"):
                    yield self._mapped(line)

    def _mapped(self, line: str) -> tuple[_Key, int]:
        place, _, offset, device, inode = line.split()[:5]
        begin, end = (int(each, 16) for each in place.split("-"))
        major, minor = (int(each, 16) for each in device.split(":"))
        size = int(offset, 16) + end - begin
        with suppress(OSError):  # who may not look at the file knows no more than what is mapped of it
            size = Path(self.place, "map_files", f"{begin:x}-{end:x}").stat().st_blocks * _BLOCK
        return (os.makedev(major, minor), int(inode)), size


def _held(file: os.stat_result) -> Iterator[tuple[_Key, int]]:
    if stat.S_ISFIFO(file.st_mode):
        yield (_PIPES, file.st_ino), _PIPE
    elif stat.S_ISSOCK(file.st_mode):
        yield (_SOCKETS, file.st_ino), _SOCKET
    elif stat.S_ISREG(file.st_mode) and not file.st_nlink:
        yield (file.st_dev, file.st_ino), file.st_blocks * _BLOCK
