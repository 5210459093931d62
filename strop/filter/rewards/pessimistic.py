"""Pessimism (Zhu et al., 2301.11270): a reward model's score less how little its pairs say about such a reply.

The score of a verdict is linear: theta . h, h the state behind the question and theta the difference of both words'
rows of the output layer; so the paper's theory for linear rewards applies as it stands. The penalty here is per reply,
where the paper has it for a whole policy.

Papers: principled-rlhf
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.environments.judging.preferences import asked_of, replies_of
from strop.errors import ConfigurationError
from strop.models.off_loop_compute import BesideLoop
from strop.roles import Reward, World
from strop.types import Group, Message

if TYPE_CHECKING:
    from strop.generate.policy import Policy
    from strop.generate.reward_model import RewardModel

Table = NDArray[np.float64]


@dataclass
class Pessimistic(Reward):
    """theta . v - bound * sqrt(v' (Sigma + ridge * I)^-1 v), v = h - the mean h of the pairs.

    Sigma is the mean outer product of differences of h within `pairs` pairs of the worlds it was trained on.
    """

    model: RewardModel
    worlds: tuple[World, ...]  # of pairs
    bound: float = 0.1  # of the penalty; 0: the score alone, but for a constant
    ridge: float = 0.1
    pairs: int = 256
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # a thread computes, and nothing of a reply is run

    _beside: BesideLoop = field(default_factory=BesideLoop, init=False, repr=False, compare=False)
    _known: tuple[Table, Table] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.bound < 0 or not self.ridge > 0 or self.pairs < 1:
            told = f"got {self.bound}, {self.ridge} and {self.pairs}"
            raise ConfigurationError(f"Pessimistic needs bound >= 0, ridge > 0 and pairs >= 1, {told}")

    def meet(self, policy: Policy) -> None:
        self.open()

    def open(self) -> None:
        """Read the model and look at its pairs, on no attempt's clock."""
        each = -(-self.pairs // len(self.worlds))
        tasks = [world.task(index) for world in self.worlds for index in range(each)]
        states = self.model.states([(asked_of(task), reply) for task in tasks for reply in replies_of(task)[:2]])
        pairs = states.reshape(-1, 2, states.shape[1])
        read = pairs[~np.isnan(pairs).any((1, 2))]  # what does not fit its context says nothing
        if not len(read):
            raise ConfigurationError(f"none of {len(pairs)} pairs fits the reward model's context: take shorter ones")
        self._known = read.mean((0, 1)), precision(read[:, 0] - read[:, 1], self.ridge)

    async def __call__(self, group: Group) -> list[float]:
        asked = [(attempt.task.messages, attempt.reply) for attempt in group.trajectories]
        return await self._beside(self._marks, asked)

    async def close(self) -> None:
        self._beside.close()

    def _marks(self, asked: Sequence[tuple[Sequence[Message], str]]) -> list[float]:
        if self._known is None:
            raise ConfigurationError("Pessimistic has not seen its pairs: call open() first")
        away = self.model.states(asked) - self._known[0]  # [N, H]
        return pessimistic(away, self.model.direction, self._known[1], self.bound)


def precision(differences: Table, ridge: float) -> Table:
    """The inverse of the mean outer product [H, H] of rows [N, H], with `ridge` on its diagonal."""
    size = differences.shape[1]
    covariance = differences.T @ differences / len(differences) + ridge * np.eye(size)
    return np.asarray(np.linalg.inv(covariance), dtype=np.float64)


def pessimistic(away: Table, direction: Table, inverse: Table, bound: float) -> list[float]:
    """Scores of rows [N, H] along a direction [H], less `bound` times their length in the metric of `inverse`."""
    lengths = np.sqrt(np.einsum("nh,hk,nk->n", away, inverse, away))
    return [float(each) for each in away @ direction - bound * lengths]
