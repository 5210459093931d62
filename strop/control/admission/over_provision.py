"""Over-provisioned partial rollouts (APRIL, Zhou et al., 2509.18521): more groups start than needed, the rest resume.

A rollout in flight when a step begins is neither lost nor restarted: it continues under the new weights from its
tokens, each with the version and logprob it was sampled with. The release resumes from text and recomputes logprobs;
here no logprob is recomputed.

Papers: april
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from strop.control.admission.support.admission_state import Standing
from strop.errors import ConfigurationError
from strop.roles import Admission


@dataclass(frozen=True)
class OverProvision(Admission):
    """`surplus` times the groups of a step are in flight; the oldest finished are trained first, none beyond `lag`."""

    surplus: float = 2.0  # times the groups of a step are in flight
    lag: int = 5  # the paper never saw more versions than that in one answer

    def __post_init__(self) -> None:
        if self.surplus < 1 or self.lag < 0:
            raise ConfigurationError(
                f"OverProvision needs surplus >= 1 and lag >= 0, got {self.surplus} and {self.lag}"
            )

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool:
        return running + waiting < min(math.ceil(self.surplus * groups_per_step), (self.lag + 1) * groups_per_step)

    def batch_size(self, standing: Standing) -> int:
        count = standing.groups_per_step
        left = standing.left_by(count)
        # left ones are trained in order, `count` a step: a step waits before that would make one too old
        is_young = all(standing.step + 1 + place // count - version <= self.lag for place, version in enumerate(left))
        return count if is_young and len(standing.waiting) >= count else 0
