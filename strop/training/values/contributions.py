"""SPA-RL's progress estimator (2505.20732): each turn's contribution, of which only the sum is known.

One number per turn is read off the policy's hidden state after the turn's last token, and the numbers of an attempt
shall add up to its reward. Reading: the release regresses with a layer trained by gradient descent; the sum of linear
readings is linear in the sum of states, so the same least-squares problem is solved exactly here. The equations are
followed, not the released scripts, which overwrite the contributions.
Papers: spa-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from strop.capabilities import Stores
from strop.errors import ConfigurationError
from strop.roles import ValueModel
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.ridge_regression import Draw, Table, read_draws, write_draws
from strop.training.arithmetic.turn_returns import turn_bounds
from strop.training.requirements import HIDDEN_AFTER, Note
from strop.types import Group, Metrics, Trajectory

_FILE = "contributions.safetensors"


@dataclass
class Contributions(ValueModel):
    """Notes the `contributions` of turns [U], refitted on the last draws; `critic` fills values and learns returns."""

    critic: ValueModel  # of the returns that contributions make
    ridge: float = 10.0  # of the regression
    window: int = 32  # draws

    needs: ClassVar[frozenset[Note]] = frozenset({HIDDEN_AFTER})
    teaches: ClassVar[bool] = True

    _slopes: Table | None = field(default=None, init=False, repr=False, compare=False)  # [H + 1]
    _draws: list[Draw] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.ridge <= 0 or self.window < 1:
            raise ConfigurationError(
                f"Contributions needs ridge > 0 and window >= 1, got {self.ridge} and {self.window}"
            )

    def open(self, model: Path, seed: int) -> None:
        self.critic.open(model, seed)
        self._slopes, self._draws = None, []

    def predict(self, groups: Sequence[Group]) -> None:
        self.critic.predict(groups)
        for attempt in (attempt for group in groups for attempt in group.scored):
            states = _states(attempt)
            attempt.notes["contributions"] = np.zeros(len(states)) if self._slopes is None else states @ self._slopes

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """What the critic says of itself, and the same of contributions against rewards by the name `progress_`."""
        metrics = self.critic.learn(groups)
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        rewards = np.array([attempt.reward for attempt in attempts], dtype=np.float64)
        foretold = np.array([float(attempt.notes.get("contributions", np.zeros(1)).sum()) for attempt in attempts])
        if attempts:
            sums = np.stack([_states(attempt).sum(0) for attempt in attempts])
            self._draws = [*self._draws, (sums, rewards)][-self.window :]
            self._slopes = self._solved()
        own = {f"progress_{name}": figure for name, figure in calibration(foretold, rewards).items()}
        return {**metrics, **own}

    def _solved(self) -> Table:
        """min |sum of states . w - reward|^2 + ridge |w|^2; the constant per turn is not punished: [H + 1]."""
        table, rewards = (np.concatenate(parts) for parts in zip(*self._draws, strict=True))
        punished = np.full(table.shape[1], self.ridge)
        punished[-1] = 1e-6  # or attempts that all have one length would leave it undetermined
        solved: Table = np.linalg.solve(table.T @ table + np.diag(punished), table.T @ rewards)
        return solved

    def save(self, folder: Path) -> None:
        if isinstance(self.critic, Stores):
            self.critic.save(folder)
        write_draws(folder / _FILE, self._draws)

    def resume(self, folder: Path) -> None:
        if isinstance(self.critic, Stores):
            self.critic.resume(folder)
        self._draws = read_draws(folder / _FILE)
        self._slopes = self._solved() if self._draws else None


def _states(attempt: Trajectory) -> Table:
    """The states after the turns that wrote something, and a constant: [U, H + 1]."""
    _, ends = turn_bounds(attempt)
    if not ends:
        return np.zeros((0, 1))
    states = HIDDEN_AFTER.of(attempt)[ends].astype(np.float64)
    return np.hstack([states, np.ones((len(states), 1))])
