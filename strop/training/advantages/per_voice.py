"""CoMAS's credit (2510.08529): REINFORCE++ for each agent by itself, over the tokens that were scored.

Papers: comas
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.td_traces import KL_NOTES, kl_payments, whitened
from strop.training.arithmetic.turn_returns import token_payments
from strop.training.requirements import Note
from strop.types import Group, Metrics, Trajectory, Turn

_SCORED = "span/scored"  # see `filter/span_rewards.py`


@dataclass(frozen=True)
class PerVoice(Advantage):
    """A_t = (r - kl * sum of log(policy / reference) from t to its turn's end - mean) / (std + epsilon).

    r is what the turn was paid; mean and population std are over all tokens of the draw that one voice wrote in turns
    that were scored. Those of other turns get 0.
    """

    kl: float = 0.01  # price of log(policy / reference)
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if self.kl < 0:
            raise ConfigurationError(f"PerVoice needs kl >= 0, got {self.kl}")

    @property
    def needs(self) -> frozenset[Note]:
        return KL_NOTES if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        by_voice: dict[str, list[tuple[Trajectory, slice, NDArray[np.float64]]]] = {}
        for attempt in (each for group in groups for each in group.scored):
            attempt.credit(0.0)
            for turn, tokens, returns in self._turns(attempt):
                by_voice.setdefault(turn.sampling.voice, []).append((attempt, tokens, returns))
        for own in by_voice.values():
            standard = whitened([returns for _, _, returns in own], self.epsilon)
            for (attempt, tokens, _), credit in zip(own, standard, strict=True):
                assert attempt.advantages is not None
                attempt.advantages[tokens] = credit

    def _turns(self, attempt: Trajectory) -> list[tuple[Turn, slice, NDArray[np.float64]]]:
        """Each turn that was scored, where its tokens stand, and what they return."""
        paid, price = token_payments(attempt), kl_payments(attempt, self.kl)
        found, first = [], 0
        for turn in attempt.turns:
            tokens = slice(first, first := first + len(turn.tokens))
            if _is_scored(turn) and len(turn.tokens):
                found.append((turn, tokens, paid[tokens].sum() + price[tokens][::-1].cumsum()[::-1]))
        return found

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Who spoke, how much of it was scored, and what a solution that was scored is paid."""
        attempts = [attempt for group in groups for attempt in group.scored]
        turns = [turn for attempt in attempts for turn in attempt.turns]
        pays = [pay for attempt in attempts for pay in self._solutions(attempt)]
        return {
            "voices": float(len({turn.sampling.voice for turn in turns})),
            "scored_share": float(np.mean([_is_scored(turn) for turn in turns])) if turns else 0.0,
            "solution_pay": float(np.mean(pays)) if pays else 0.0,
        }

    def _solutions(self, attempt: Trajectory) -> list[float]:
        """What was paid for every other turn from the first on."""
        paid, ends = token_payments(attempt), np.cumsum([0, *(len(turn.tokens) for turn in attempt.turns)])
        sums = [float(paid[low:high].sum()) for low, high in pairwise(ends)]
        return [pay for pay, turn in zip(sums[0::2], attempt.turns[0::2], strict=True) if _is_scored(turn)]


def _is_scored(turn: Turn) -> bool:
    return bool(turn.aux.get(_SCORED, np.zeros(1)).any())
