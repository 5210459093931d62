"""AAPO's credit (2505.14264): GRPO's, plus how far each attempt is ahead of the model training began with.

The paper's "momentum" is no moving average: it is the improvement over one sample of the reference model at the same
task. Its loss, cross-entropy weighted by this credit, is `Reinforce`.
Papers: aapo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class ReferenceMomentum(Advantage):
    """A = (r - mean) / (std + epsilon) + clip(r - reference's r, low, high); a group without contrast still trains.

    The strategy `BesideReference` and the gate `PairedWithReference` make the pairs and leave the reference's reward as
    a fact; an attempt whose partner failed has none, and no second term.
    """

    low: float = -0.2  # of the lead over the reference, which is cut there
    high: float = 0.28  # of the lead over the reference
    epsilon: float = 1e-4

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            if group.scored and not any("reference" in attempt.facts for attempt in group.scored):
                raise ConfigurationError(
                    f"ReferenceMomentum needs the reference's reward for attempts of group {group.number}: add the "
                    "gate PairedWithReference"
                )
            rewards = np.array([attempt.reward for attempt in group.scored], dtype=np.float64)
            rewards = rewards - rewards[:1]
            spread = rewards.std(ddof=1) if len(rewards) > 1 else 0.0
            for attempt, reward in zip(group.scored, rewards, strict=True):
                attempt.credit(float((reward - rewards.mean()) / (spread + self.epsilon)) + self._ahead(attempt))

    def _ahead(self, attempt: Trajectory) -> float:
        expected = attempt.facts.get("reference", attempt.reward)
        return float(np.clip(attempt.reward - expected, self.low, self.high))
