"""Tree advantage: a token that several rollouts share gets the sum or mean of their advantages.

Every sampled token belongs to one rollout and is a prefix of those that branch off from it. The sum gives, token by
token, the gradient of training each rollout whole; the mean gives shared tokens no more weight than others.
Papers: ettrl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError, nearest
from strop.roles import Advantage
from strop.training.arithmetic.tree_lineage import counts, lines
from strop.types import Group, Metrics, Rollout

_RULES = ("sum", "mean")


@dataclass(frozen=True)
class AlongTree(Advantage):
    """Sum or mean of `inner`'s advantages, one number each, over the rollouts that contain a token.

    Rollouts that are not scored (failed, abandoned) contribute and receive nothing.
    """

    inner: Advantage
    rule: str = "sum"  # or mean

    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            raise ConfigurationError(f"AlongTree has no rule {self.rule!r}: {nearest(self.rule, _RULES)}")

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for group in groups:
            rollouts = {rollout.id: rollout for rollout in group.scored}
            sums = {name: np.zeros(rollout.num_tokens) for name, rollout in rollouts.items()}
            for name, line in lines(group.scored).items():
                advantage = _advantage(rollouts[name])
                for owner, size in line.items():
                    sums[owner][:size] += advantage
            times = counts(group)
            for name, rollout in rollouts.items():
                total = sums[name] / times[name] if self.rule == "mean" else sums[name]
                rollout.advantages = total.astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The share of completion tokens that are part of more than one rollout."""
        times = np.concatenate([np.zeros(0), *(each for group in groups for each in counts(group).values())])
        return {"shared_token_share": float((times > 1).mean()) if len(times) else 0.0}


def _advantage(rollout: Rollout) -> float:
    """The rollout's single advantage; an empty rollout has 0."""
    given = rollout.advantages
    if given is None or not len(given):
        return 0.0
    if np.ptp(given) > 0:
        raise ConfigurationError(
            f"AlongTree needs one advantage per rollout, got {given.min():g} to {given.max():g} in {rollout.id}: "
            "its shared tokens would have no defined sum"
        )
    return float(given[0])
