"""Current stage of each part of a run, recorded by the loops and shown by `strop why`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple


class Stage(NamedTuple):
    """Activity of one part, and its start (seconds of the monotonic clock)."""

    what: str
    since: float


@dataclass
class Stages:
    """Stages by name: `generation`, `training`, `group 41`, `rollout 41/0`; read from another thread."""

    moved: float = field(default_factory=time.monotonic)  # when anything last changed
    _now: dict[str, Stage] = field(default_factory=dict)

    def enter(self, who: str, what: str) -> None:
        """`who` does `what` from now on."""
        self.moved = time.monotonic()
        self._now[who] = Stage(what, self.moved)

    def leave(self, who: str) -> None:
        """`who` is done."""
        self.moved = time.monotonic()
        self._now.pop(who, None)

    def of(self, kind: str) -> dict[str, Stage]:
        """Those whose name is `kind` and a word more, by that word; the one that began first comes first."""
        found = {who.removeprefix(f"{kind} "): at for who, at in self.all().items() if who.startswith(f"{kind} ")}
        return dict(sorted(found.items(), key=lambda item: item[1].since))

    def all(self) -> dict[str, Stage]:
        """A copy: one operation for the interpreter, so no lock is needed."""
        return self._now.copy()
