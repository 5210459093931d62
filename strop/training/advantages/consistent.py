"""GRPO-CARE's bonus (2506.16141): of right attempts, those whose answer follows best from their own working earn more.

How well it follows is how likely a slowly moving reference finds the written answer behind the written working, the
geometric mean over the answer's tokens, which the reward `AnswerPlace` marks. Read here: means are taken within a
group, where the release takes them over what lies on one device (one task there); a reply without an answer has
consistency 0, where the release gives it 1.

Papers: grpo-care
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.success import success
from strop.training.requirements import REFERENCE_LOGPROBS, Note
from strop.types import Group, Metrics, Trajectory

_ANSWER = "span/answer"  # see `filter/span_rewards.py`
_LEAST = 0.1  # success of an attempt that counts as right at all


@dataclass(frozen=True)
class Consistent(Advantage):
    """`inner`'s credit of rewards with bonus * success added, where an attempt is right and consistent.

    Right: success above 0.1 and no less than the group's mean. Consistent: c = min(exp(mean logprob of the answer under
    the reference), cap) is no less than the mean c of the right ones, less `margin`.
    """

    inner: Advantage
    bonus: float = 0.5  # of success
    cap: float = 0.95  # of c: beyond it certainty is no merit
    margin: float = 0.0  # by which c may miss the mean

    needs: ClassVar[frozenset[Note]] = frozenset({REFERENCE_LOGPROBS})
    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 < self.cap <= 1 or self.bonus < 0 or self.margin < 0:
            raise ConfigurationError(
                f"Consistent needs 0 < cap <= 1, bonus and margin >= 0, got {self.cap}, {self.bonus}, {self.margin}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        raised = [self._raised(group) for group in groups]
        self.inner(raised)
        for group, other in zip(groups, raised, strict=True):
            for attempt, copy in zip(group.scored, other.trajectories, strict=True):
                attempt.advantages, attempt.returns = copy.advantages, copy.returns

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """What the draw's attempts were found to be, and which share of the right ones gets the bonus."""
        consistent = [self._consistency(attempt) for group in groups for attempt in group.scored]
        bonuses = [bonus for group in groups for bonus in self.bonuses(group)]
        found: Metrics = {"consistency": float(np.mean(consistent)), "consistency_bonus": float(np.mean(bonuses))}
        is_right = [right for group in groups for right in _are_right(group)]
        return found | ({"consistent_share": np.count_nonzero(bonuses) / sum(is_right)} if any(is_right) else {})

    def bonuses(self, group: Group) -> list[float]:
        """Of each attempt that counts."""
        rights = [success(attempt) for attempt in group.scored]
        consistent = [self._consistency(attempt) for attempt in group.scored]
        is_right = _are_right(group)
        among = [c for c, counts in zip(consistent, is_right, strict=True) if counts]
        least = sum(among) / max(len(among), 1) - self.margin
        earned = [counts and c >= least - 1e-9 for c, counts in zip(consistent, is_right, strict=True)]
        return [self.bonus * right * got for right, got in zip(rights, earned, strict=True)]

    def _raised(self, group: Group) -> Group:
        """Copies whose reward holds the bonus: what is written down about attempts stays as it is."""
        pairs = zip(group.scored, self.bonuses(group), strict=True)
        return replace(group, trajectories=[replace(each, reward=each.reward + bonus) for each, bonus in pairs])

    def _consistency(self, attempt: Trajectory) -> float:
        marks = [turn.aux.get(_ANSWER, np.zeros(len(turn.prompt) + len(turn.tokens))) for turn in attempt.turns]
        own = [rows[len(turn.prompt) :] for rows, turn in zip(marks, attempt.turns, strict=True)]
        is_answer = np.concatenate([np.zeros(0), *own]) > 0  # [N]
        if not is_answer.any():
            return 0.0
        logprobs = REFERENCE_LOGPROBS.of(attempt).astype(np.float64)[is_answer]
        return float(min(np.exp(logprobs.mean()), self.cap))


def _are_right(group: Group) -> list[bool]:
    """Of each attempt that counts: success above 0.1, and no less than the mean."""
    rights = [success(attempt) for attempt in group.scored]
    mean = sum(rights) / max(len(rights), 1)
    return [right > _LEAST and right >= mean - 1e-9 for right in rights]
