"""OpenClaw-RL's credit (2603.10165): what a reply's answer was judged to be, plus what a hint would have changed.

Papers: openclaw-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import placed_payments
from strop.types import FloatArray, Group, Metrics, Trajectory

_GAP = "hint_gap"  # see `HindsightHints`


@dataclass(frozen=True)
class JudgedAndHinted(Advantage):
    """A_t = judged * r of the turn + hinted * (log p with the hint - log p without it) at t; no baseline, undivided.

    A turn that nobody answered has r = 0, one without a hint no second term.
    """

    judged: float = 1.0  # weight of what was judged
    hinted: float = 1.0  # weight of the hint's gap

    def __call__(self, groups: Sequence[Group]) -> None:
        for attempt in (attempt for group in groups for attempt in group.scored):
            paid, lengths = placed_payments(attempt), [len(turn.tokens) for turn in attempt.turns]
            turns = np.split(paid, np.cumsum(lengths)[:-1]) if lengths else []
            judged = np.repeat([part.sum() for part in turns], lengths) if lengths else paid
            attempt.advantages = (self.judged * judged + self.hinted * gaps_of(attempt)).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how many replies there was a hint for, and how far it is from them."""
        attempts = [attempt for group in groups for attempt in group.scored]
        gaps = [float(np.abs(gaps_of(attempt)).sum()) for attempt in attempts]
        hints = sum(attempt.facts.get("hints", 0.0) for attempt in attempts)
        return {"hint_gap": sum(gaps) / max(len(gaps), 1), "hints": hints / max(len(attempts), 1)}


def gaps_of(attempt: Trajectory) -> FloatArray:
    """[N]."""
    none = [np.zeros(len(turn.tokens), np.float32) for turn in attempt.turns]
    rows = [t.aux[_GAP][len(t.prompt) :] if _GAP in t.aux else n for t, n in zip(attempt.turns, none, strict=True)]
    return np.concatenate(rows) if rows else np.zeros(0, np.float32)
