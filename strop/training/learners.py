"""Parts that learn from a batch beside the policy: critics, heads of strategies, whatever has `learn`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strop.capabilities import Learns, learners_in
from strop.types import Group, Metrics

if TYPE_CHECKING:
    from strop.run import Run


def learners_of(run: Run) -> list[Learns]:
    """All of them, each once, wherever it stands; whoever asks does so once, because the whole run is walked."""
    return learners_in(run)


def teach(learners: Sequence[Learns], groups: Sequence[Group]) -> Metrics:
    """The last thing of a step: show them its groups, with the advantage that was given; returns what they say of
    it.
    """
    metrics: Metrics = {}
    for part in learners:
        metrics |= part.learn(groups)
    for rollout in (rollout for group in groups for rollout in group.rollouts):
        rollout.policy_statistics = {}  # or a buffer that keeps the group would keep them
    return metrics
