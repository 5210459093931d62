"""RLEP's replay (2507.07451): beside the fresh attempts at a task stand some right ones of an earlier run.

Reading: replayed attempts are rewarded anew, compared with the fresh ones, and counted in no pass rate. No weights of
this run wrote them (version -1): they are trained as if the policy before the step had. A task with too few successes
gets fewer; the release fills up with empty answers, which count as wrong.
Papers: rlep
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.turn_ops import by_nobody
from strop.roles import Strategy
from strop.storage.ledger import Ledger
from strop.success import ROUNDING
from strop.types import FilePath, Group, Origin, Start, Task, Trajectory

if TYPE_CHECKING:
    from strop.generate.policy import Policy
    from strop.run import Run


@dataclass
class WithSuccesses(Strategy):
    """What `inner` makes, and up to `count` different attempts of the policy at the same task from another ledger.

    Tasks are known by their content: worlds, levels and seed must be those of the earlier run.
    """

    inner: Strategy
    pool: FilePath  # ledger.db of the earlier run
    count: int = 2  # replayed attempts in a group
    right: float = 1.0  # what the world paid for a right attempt, there
    _ledger: Ledger | None = field(default=None, init=False, repr=False, compare=False)
    _known: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigurationError(f"WithSuccesses needs count >= 1, got {self.count}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        made = await self.inner(group, starts, play)
        return made if group.trajectories else [*made, *self._replayed(group.task, play)]

    def problems(self, run: Run) -> list[str]:
        """What is wrong with the pool."""
        if not Path(self.pool).is_file():
            return [f"{self.pool} does not exist: name the folder of a run that solved some of these tasks"]
        return [] if self._successes() else [f"{self.pool} holds no attempt that its world paid {self.right:g}"]

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    def _replayed(self, task: Task, play: Player) -> list[Trajectory]:
        known = self._successes().get(task.id, [])
        if not known:
            return []
        starts = [play.another() for _ in range(min(self.count, len(known)))]
        chosen = np.random.default_rng(starts[0].key).choice(len(known), len(starts), replace=False)
        return [self._again(known[index], task, start) for start, index in zip(starts, chosen.tolist(), strict=True)]

    def _successes(self) -> dict[str, list[str]]:
        """Ids of right attempts by task."""
        if self._ledger is None:
            self._ledger = Ledger(Path(self.pool), read_only=True)
            self._known = self._ledger.successes(self.right - ROUNDING)
        return self._known

    def _again(self, name: str, task: Task, start: Start) -> Trajectory:
        assert self._ledger is not None
        found = self._ledger.attempt(name)
        if self._policy is not None:
            self._check_prompt(found, self._policy)
        turns = tuple(by_nobody(turn) for turn in found.turns)
        fresh = replace(found, id=start.id, task=task, turns=turns, origin=Origin.REPLAYED, facts={})
        return replace(fresh, reward=0.0, rewards={}, parent="", family="")

    def _check_prompt(self, attempt: Trajectory, policy: Policy) -> None:
        due = policy.opening(attempt.task.messages, attempt.task)
        if attempt.turns[0].prompt.tolist() != due.tolist():
            raise ConfigurationError(
                f"attempt {attempt.id} of {self.pool} reads task {attempt.task.id} in other tokens: the earlier run "
                "had another tokenizer or template"
            )
