"""How strongly several reward models prefer the better one of a pair (Secrets of RLHF II, 2401.06080).

Reading: the paper trains ten models on the same pairs in another order each, which are ten runs here; those whose mean
difference is among the lowest `wrong` of pairs, and against the label, have a wrong one. Which value that is, is found
on `sample` pairs of the worlds before the first step, so that it depends on no order of groups.

Papers: secrets-of-rlhf-ii
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strop.environments.judging.preferences import asked_of, replies_of
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.reward_model import RewardModel
from strop.roles import Strategy, World
from strop.types import Group, Start, Task, Trajectory


@dataclass
class Voted(Strategy):
    """The attempts of `inner`, with the mean of the judges' differences u, and whether it says that the label is wrong.

    Both stand in `Turn.aux["strength"]` of the two, and in their facts. A pair that does not fit a judge's context has
    no vote: u is 0.
    """

    inner: Strategy
    judges: tuple[RewardModel, ...]
    worlds: tuple[World, ...]  # of pairs
    wrong: float = 0.2  # most of pairs whose labels are
    sample: int = 256  # pairs

    _lowest: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.judges or not 0 <= self.wrong < 1 or self.sample < 1:
            told = f"got {len(self.judges)}, {self.wrong} and {self.sample}"
            raise ConfigurationError(f"Voted needs a judge, 0 <= wrong < 1 and sample >= 1, {told}")

    def meet(self, policy: Policy) -> None:
        """Find out below which u a label is wrong."""
        each = -(-self.sample // len(self.worlds))
        found = self.strengths([world.task(index) for world in self.worlds for index in range(each)])
        # never above 0, as in the paper's data: a label that the judges agree with is not wrong, however little they do
        self._lowest = min(float(np.nanquantile(found, self.wrong)), 0.0) if self.wrong else -np.inf

    def strengths(self, tasks: Sequence[Task]) -> list[float]:
        """u of each pair; NaN where a judge cannot read one."""
        asked = [(asked_of(task), reply) for task in tasks for reply in replies_of(task)[:2]]
        told = np.array([judge.scores(asked) for judge in self.judges])  # [M, 2 N]
        return [float(each) for each in (told[:, 0::2] - told[:, 1::2]).mean(0)]

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if self._lowest is None:
            raise ConfigurationError("Voted does not know which labels are wrong: call meet(policy) first")
        attempts = await self.inner(group, starts, play)
        (strength,) = self.strengths([group.task])
        is_wrong = strength < self._lowest  # never of NaN
        told = np.array([[np.nan_to_num(strength), is_wrong]], dtype=np.float32)  # one row for the whole turn
        return [_told(attempt, told) for attempt in attempts]


def _told(attempt: Trajectory, told: np.typing.NDArray[np.float32]) -> Trajectory:
    turns = tuple(replace(turn, aux={**turn.aux, "strength": told}) for turn in attempt.turns)
    return replace(attempt, turns=turns, facts=attempt.facts | {"strength": float(told[0, 0])})
