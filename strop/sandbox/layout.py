"""File system of a sandbox: visible and writable folders, laid out before the restrictions apply.

A process enters it between its fork and the exec of bubblewrap. A sandbox that root starts runs as an unprivileged
user, so everything it needs is mounted here, past folders which that user may not enter.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from strop.sandbox.kernel_isolation.cgroup import Cgroup
from strop.sandbox.kernel_isolation.mounts import detach, mount_memory, opened, own_mounts, show
from strop.sandbox.kernel_isolation.unprivileged_user import become, forget_keys, unused_user_of
from strop.sandbox.writable_folder import WritableFolder

PLACE = "/sys"  # is everywhere, needed by nobody, and hidden for whoever enters the layout
HOME = "/home/sandbox"  # of whoever is inside
MEMORY = ("tmp", "shm", "home")  # folders that are memory, and have one size together
EMPTY, NOTHING, FOLDER = f"{PLACE}/empty", f"{PLACE}/nothing", f"{PLACE}/folder"


@dataclass(frozen=True)
class SandboxLayout:
    """Contents of the file system."""

    memory: int  # bytes of all folders that are memory
    seen: tuple[str, ...] = ()
    writable: WritableFolder | None = None
    group: Cgroup | None = None
    users: range = range(0)  # as one of whom root enters it

    def shown(self, path: str) -> str:
        """Where a path that may be seen is found inside."""
        return f"{PLACE}/seen/{self.seen.index(path)}"

    def enter(self) -> None:
        """For good, with no keys and, if root, as an unused user."""
        if self.group is not None:
            self.group.join()
        user = unused_user_of(self.users)
        if user is not None and self.writable is not None:
            self.writable.give(user)
        own_mounts()
        shown = {self.shown(path): opened(path) for path in self.seen}
        if self.writable is not None:
            shown[FOLDER] = opened(self.writable.path)
        if not any(Path(path).is_relative_to(PLACE) for path in self.seen):
            detach(PLACE)
        mount_memory(PLACE, self.memory)
        for place, handle in shown.items():
            show(handle, place)
            os.close(handle)
        os.mkdir(EMPTY)  # noqa: PTH102 (after a fork each object touched is a page copied)
        os.close(os.open(NOTHING, os.O_CREAT | os.O_WRONLY, 0o444))
        for name in MEMORY:
            os.mkdir(f"{PLACE}/{name}", 0o700)  # noqa: PTH102
            if user is not None:
                os.chown(f"{PLACE}/{name}", user, user)
        if user is not None:
            become(user)
        forget_keys()
        for path in self.seen:
            _check(path, self.shown(path))


def _check(path: str, shown: str) -> None:
    """What it may see it must be able to read, or to knock at."""
    mode = Path(shown).stat().st_mode
    wanted = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else os.W_OK if stat.S_ISSOCK(mode) else os.R_OK
    if not os.access(shown, wanted):
        raise PermissionError(f"{path} may not be read by all users, as one of whom a sandbox of root's reads it")
