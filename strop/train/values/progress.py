"""SPA-RL's progress estimator (2505.20732): each turn's contribution, of which only the sum is known.

One number per turn is read off the policy's hidden state at the turn's end, and the numbers of an attempt shall add up
to its reward. Reading: the release regresses with a layer trained by gradient descent; the sum of linear readings is
linear in the sum of states, so the same least-squares problem is solved exactly here. The equations are followed, not
the released scripts, which overwrite the contributions.
Papers: spa-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Metrics, ValueModel
from strop.train.arithmetic.calibration import calibration
from strop.train.arithmetic.ridge import Draw, Table, read_draws, write_draws
from strop.types import Group, Trajectory

_FILE = "progress.safetensors"


@dataclass
class Progress(ValueModel):
    """Fills `values` with a turn's contribution at its last token and 0 elsewhere; refitted on the last draws."""

    ridge: float = 10.0  # of the regression
    window: int = 32  # draws

    needs: ClassVar[frozenset[str]] = frozenset({"hidden"})

    _slopes: Table | None = field(default=None, init=False, repr=False, compare=False)  # [H + 1]
    _draws: list[Draw] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.ridge <= 0 or self.window < 1:
            raise ConfigurationError(f"Progress needs ridge > 0 and window >= 1, got {self.ridge} and {self.window}")

    def open(self, model: Path, seed: int) -> None:
        self._slopes, self._draws = None, []

    def predict(self, groups: Sequence[Group]) -> None:
        for attempt in (attempt for group in groups for attempt in group.scored):
            attempt.values = np.zeros(attempt.num_tokens, dtype=np.float32)
            ends = turn_ends(attempt)
            if self._slopes is not None and ends:
                attempt.values[ends] = _states(attempt, ends) @ self._slopes

    def learn(self, groups: Sequence[Group]) -> Metrics:
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        rewards = np.array([attempt.reward for attempt in attempts], dtype=np.float64)
        foretold = np.array([0.0 if a.values is None else float(a.values.sum()) for a in attempts])
        if attempts:
            sums = np.stack([_states(attempt, turn_ends(attempt)).sum(0) for attempt in attempts])
            self._draws = [*self._draws, (sums, rewards)][-self.window :]
            self._slopes = self._solved()
        return calibration(foretold, rewards)

    def _solved(self) -> Table:
        """min |sum of states . w - reward|^2 + ridge |w|^2; the constant per turn is not punished: [H + 1]."""
        table, rewards = (np.concatenate(parts) for parts in zip(*self._draws, strict=True))
        punished = np.full(table.shape[1], self.ridge)
        punished[-1] = 1e-6  # or attempts that all have one length would leave it undetermined
        solved: Table = np.linalg.solve(table.T @ table + np.diag(punished), table.T @ rewards)
        return solved

    def save(self, folder: Path) -> None:
        write_draws(folder / _FILE, self._draws)

    def resume(self, folder: Path) -> None:
        self._draws = read_draws(folder / _FILE)
        self._slopes = self._solved() if self._draws else None


def turn_ends(attempt: Trajectory) -> list[int]:
    """Where the last token of each turn stands among the written ones; turns without a token have none."""
    ends = np.cumsum([len(turn.tokens) for turn in attempt.turns])
    return [int(end) - 1 for turn, end in zip(attempt.turns, ends, strict=True) if len(turn.tokens)]


def _states(attempt: Trajectory, ends: Sequence[int]) -> Table:
    """The states at the ends of turns and a constant: [turns, H + 1]."""
    if "hidden" not in attempt.notes:
        raise ConfigurationError(f"Progress needs the hidden states of attempt {attempt.id}, it has no notes of them")
    states = attempt.notes["hidden"][list(ends)].astype(np.float64)
    return np.hstack([states, np.ones((len(states), 1))])
