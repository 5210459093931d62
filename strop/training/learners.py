"""Parts that learn from a batch besides the policy: critics, heads of strategies, every part with `learn`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strop.capabilities import Learns, learners_in
from strop.types import Group, Metrics

if TYPE_CHECKING:
    from strop.run import Run


def learners_of(run: Run) -> list[Learns]:
    """All learners of a run, each once; call it once per run, because it walks the whole run."""
    return learners_in(run)


def teach(learners: Sequence[Learns], groups: Sequence[Group]) -> Metrics:
    """Train every learner on the step's groups, with their advantages, after the policy; returns their metrics."""
    metrics: Metrics = {}
    for part in learners:
        metrics |= part.learn(groups)
    for rollout in (rollout for group in groups for rollout in group.rollouts):
        rollout.policy_statistics = {}  # else a buffer that keeps the group would keep them
    return metrics
