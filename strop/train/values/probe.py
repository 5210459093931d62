"""POISE (2605.07579): the policy's own hidden states and entropies foretell the reward, through a ridge regression.

An attempt's baseline comes from its siblings' states and never from its own, so that the gradient stays unbiased.
Reading: the last layer's states stand for those of layer 19; the three entropy figures are mean, spread and largest;
with more than two attempts the baseline is the mean of what the others foretell, the target the mean of their rewards.
Papers: poise
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from strop.errors import CheckpointError, ConfigurationError
from strop.roles import Metrics
from strop.train.calibration import calibration
from strop.types import Group, Trajectory

_Table = NDArray[np.float64]
_FILE = "probe.safetensors"


@dataclass
class Probe:
    """Fills `values` with one number per attempt; refitted after every step on the last `window` draws."""

    ridge: float = 0.01
    tokens: int = 10  # at the end of the prompt, and of what was written, whose states are averaged
    window: int = 8  # draws
    low: float = 0.0  # rewards lie between
    high: float = 1.0

    needs: ClassVar[frozenset[str]] = frozenset({"entropy", "hidden", "prompt_hidden"})

    _fit: _Fit | None = field(default=None, init=False, repr=False, compare=False)
    _draws: list[tuple[_Table, _Table]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (self.ridge > 0 and self.tokens > 0 and self.window > 0 and self.low < self.high):
            raise ConfigurationError(f"Probe needs ridge, tokens and window > 0 and low < high, got {self}")

    def problems(self, run: Any) -> list[str]:
        size = getattr(run.budget, "size", None)
        return [f"a baseline from siblings needs >= 2 attempts per group, got {size}"] if size and size < 2 else []

    def open(self, model: Path, seed: int) -> None:
        self._fit, self._draws = None, []

    def predict(self, groups: Sequence[Group]) -> None:
        for group in groups:
            foretold = {attempt.id: self.foretell(attempt) for attempt in group.scored if attempt.num_tokens}
            for attempt in group.scored:
                others = [value for name, value in foretold.items() if name != attempt.id]
                attempt.values = np.full(attempt.num_tokens, np.mean(others) if others else 0.0, dtype=np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        rows, targets, expected, rewards = [], [], [], []
        for group in groups:
            written = [attempt for attempt in group.scored if attempt.num_tokens]
            for attempt in written if len(written) > 1 else ():
                rows.append(self._features(attempt))
                targets.append(np.mean([other.reward for other in written if other is not attempt]))
                expected.append(0.0 if attempt.values is None else float(attempt.values[0]))
                rewards.append(attempt.reward)
        if rows:
            self._draws = [*self._draws, (np.stack(rows), np.array(targets))][-self.window :]
            self._fit = _fitted(self._draws, self.ridge)
        return calibration(np.array(expected), np.array(rewards))

    def foretell(self, attempt: Trajectory) -> float:
        """The reward an attempt's states promise; the lowest one while nothing was learned."""
        if self._fit is None:
            return self.low
        return float(np.clip(self._fit(self._features(attempt)), self.low, self.high))

    def _features(self, attempt: Trajectory) -> _Table:
        """[2 H + 3]."""
        if missing := self.needs - set(attempt.notes):
            raise ConfigurationError(f"attempt {attempt.id} has no notes of {', '.join(sorted(missing))}")
        notes = {name: attempt.notes[name].astype(np.float64) for name in self.needs}
        entropy = notes["entropy"]
        states = [notes[name][-self.tokens :].mean(0) for name in ("prompt_hidden", "hidden")]
        return np.concatenate([*states, [entropy.mean(), entropy.std(), entropy.max()]])

    def save(self, folder: Path) -> None:
        draws = {
            f"{name}.{i}": table for i, pair in enumerate(self._draws) for name, table in zip("xy", pair, strict=True)
        }
        save_file(draws or {"empty": np.zeros(1)}, folder / _FILE)

    def resume(self, folder: Path) -> None:
        try:
            found = load_file(folder / _FILE)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"cannot read the probe in {folder}: {error}") from error
        self._draws = [(found[f"x.{i}"], found[f"y.{i}"]) for i in range(len(found) // 2)]
        self._fit = _fitted(self._draws, self.ridge) if self._draws else None


@dataclass(frozen=True, eq=False)
class _Fit:
    """A standardised linear prediction."""

    centre: _Table  # [F]
    spread: _Table  # [F]
    slopes: _Table  # [F]
    level: float

    def __call__(self, features: _Table) -> float:
        return float((features - self.centre) / self.spread @ self.slopes + self.level)


def _fitted(draws: Sequence[tuple[_Table, _Table]], ridge: float) -> _Fit:
    """min |X w - y|^2 + ridge |w|^2 over standardised features; the level is not punished."""
    table, targets = (np.concatenate(parts) for parts in zip(*draws, strict=True))
    centre, spread = table.mean(0), table.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    scaled, level = (table - centre) / spread, float(targets.mean())
    gram = scaled.T @ scaled + ridge * np.eye(scaled.shape[1])
    return _Fit(centre, spread, np.linalg.solve(gram, scaled.T @ (targets - level)), level)
