"""POISE: groups of two with a cross-rollout baseline, a ridge regression on the policy's own hidden states.

Title: Your Language Model is Its Own Critic: Reinforcement Learning with Value Estimation from Actor's Internal
    States
Paper: arXiv 2605.07579 (2026)
Claim: As good as DAPO for less computation.
Reading: States of the last layer replace those of layer 19; the three entropy features are mean, standard deviation and
    maximum. The paper's ridge of 0.01 is for batches of over 1000 rollouts and overfits batches of 64.
Acts: explained_variance != 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import ValueModel
from strop.run import Run
from strop.training.advantages.constant import Residual
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.ridge_regression import Fit, LabelledBatch, Table, fitted, read_batches, write_batches
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import ENTROPY, HIDDEN, PROMPT_HIDDEN, PolicyStatistic
from strop.types import Group, Metrics, Rollout

# POISE (2605.07579): a ridge regression predicts the reward from the policy's own hidden states and entropies.
#
# A rollout's baseline comes from its siblings' states and never from its own, so that the gradient stays unbiased.
# Reading: states of the last layer replace those of layer 19; the three entropy features are mean, standard deviation
# and maximum; with more than two rollouts the baseline is the mean prediction from the siblings, and the target is
# their mean reward.

_FILE = "probe.safetensors"


@dataclass
class Probe(ValueModel):
    """Reward probe with one value per rollout, refitted after every step on the last `window` training batches."""

    ridge: float = 0.01  # of the regression
    tokens: int = 10  # last tokens of the prompt, and of the completion, whose states are averaged
    window: int = 8  # training batches
    low: float = 0.0  # smallest prediction
    high: float = 1.0  # largest prediction

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({ENTROPY, HIDDEN, PROMPT_HIDDEN})

    _fit: Fit | None = field(default=None, init=False, repr=False, compare=False)
    _batches: list[LabelledBatch] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (self.ridge > 0 and self.tokens > 0 and self.window > 0 and self.low < self.high):
            raise ConfigurationError(f"Probe needs ridge, tokens and window > 0 and low < high, got {self}")

    def problems(self, run: Any) -> list[str]:
        size = run.budget.size
        return [f"a baseline from siblings needs group_size >= 2, got {size}"] if size and size < 2 else []

    def open(self, model: Path, seed: int) -> None:
        self._fit, self._batches = None, []

    def predict(self, groups: Sequence[Group]) -> None:
        for group in groups:
            predicted = {rollout.id: self.expected_reward(rollout) for rollout in group.scored if rollout.num_tokens}
            for rollout in group.scored:
                others = [value for name, value in predicted.items() if name != rollout.id]
                rollout.values = np.full(rollout.num_tokens, np.mean(others) if others else 0.0, dtype=np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        rows, targets, expected, rewards = [], [], [], []
        for group in groups:
            written = [rollout for rollout in group.scored if rollout.num_tokens]
            for rollout in written if len(written) > 1 else ():
                rows.append(self._features(rollout))
                targets.append(np.mean([other.reward for other in written if other is not rollout]))
                expected.append(0.0 if rollout.values is None else float(rollout.values[0]))
                rewards.append(rollout.reward)
        if rows:
            self._batches = [*self._batches, (np.stack(rows), np.array(targets))][-self.window :]
            self._fit = fitted(self._batches, self.ridge)
        return calibration(np.array(expected), np.array(rewards))

    def expected_reward(self, rollout: Rollout) -> float:
        """The predicted reward of a rollout; `low` before the first fit."""
        if self._fit is None:
            return self.low
        return float(np.clip(self._fit(self._features(rollout)), self.low, self.high))

    def _features(self, rollout: Rollout) -> Table:
        """[2 H + 3]."""
        entropy = ENTROPY.of(rollout).astype(np.float64)
        last = [
            policy_statistic.of(rollout)[-self.tokens :].astype(np.float64)
            for policy_statistic in (PROMPT_HIDDEN, HIDDEN)
        ]
        states = [each.mean(0) for each in last]
        return np.concatenate([*states, [entropy.mean(), entropy.std(), entropy.max()]])

    def save(self, folder: Path) -> None:
        write_batches(folder / _FILE, self._batches)

    def resume(self, folder: Path) -> None:
        self._batches = read_batches(folder / _FILE)
        self._fit = fitted(self._batches, self.ridge) if self._batches else None


def poise(
    setting: Setting = Setting(group_size=2, groups_per_step=32),
    low: float = 0.2,  # the lower clip bound of a ratio is 1 - low
    high: float = 0.28,  # the upper clip bound of a ratio is 1 + high
    ridge: float = 300.0,  # the paper's 0.01 is for batches of over 1000 rollouts and overfits 64
    window: int = 32,  # training batches that the regression is fitted on
) -> Run:
    """A ridge regression on the policy's own hidden states as the baseline; no critic, no standard deviation."""
    values = Probe(ridge=ridge, window=window)
    return setting.run("poise", Residual(), (Clip(low, high),), values=values, reduction=SequenceMean())
