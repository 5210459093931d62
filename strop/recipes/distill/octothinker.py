"""OctoThinker: mid-training at a constant learning rate, then decayed on short or long chains of thought, then RL.

Title: OctoThinker: Mid-training Incentivizes Reinforcement Learning Scaling
Paper: arXiv 2506.20512 (2025)
Claim: After such mid-training a Llama base model gains as much from RL as a Qwen model does.
Reading: The branches' schedule was not found: a half cosine to a tenth. 20 stable steps and 10 of a branch, where the
    paper has 200 and 20 billion tokens. Short and long are the environment's own chains of thought without and with
    behaviours that make them longer (`Injected`); hybrid has half of each. All branches start from the same stable
    checkpoint if seed and `stable` are equal; a warm-up passes on weights but not Adam's moments, which restart at 0.
Left out: The corpus, and a cap on length that grows with RL.
Acts: learning_rate > 0 and warmup/learning_rate < 5e-4 with stable=2, decay=2
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from strop.backends import Objective
from strop.errors import CheckpointError, ConfigurationError, nearest
from strop.generate.agents.behavior_injection import Injected
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Trainer
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.requirements import Need, PolicyStatistic
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Metrics

# OctoThinker's learning-rate schedule (2506.20512): stable, then decay.

_FILE = "stable_then_decay.json"


@dataclass
class StableThenDecay(Trainer):
    """Trainer with the learning rate of `inner` for `stable` steps, then a half cosine down to `floor` of it.

    The cosine takes `decay` steps; its first step has the full learning rate, and later steps stay at `floor`.
    """

    inner: TorchTrainer
    decay: int  # optimizer steps of the decay
    stable: int = 0  # optimizer steps before the decay
    floor: float = 0.1  # final share of the learning rate
    _num_steps: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.stable < 0 or self.decay < 1 or not 0 <= self.floor <= 1:
            raise ConfigurationError(
                f"StableThenDecay needs stable >= 0, decay >= 1 and 0 <= floor <= 1, got {self.stable}, {self.decay} "
                f"and {self.floor}"
            )

    def scale(self, num_steps: int) -> float:
        """The factor on the learning rate after `num_steps` optimizer steps."""
        done = min(max(num_steps - self.stable, 0) / self.decay, 1.0)
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2

    @property
    def max_tokens(self) -> int:
        return self.inner.max_tokens

    def open(self, model: Path, seed: int) -> None:
        self.inner.open(model, seed)
        self._num_steps = 0

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        self.inner.policy_statistic(groups, needs)

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        self.inner.annotate(batches, needs)

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        rate = self.inner.learning_rate
        self.inner.learning_rate = rate * self.scale(self._num_steps)
        try:
            metrics = self.inner.step(batches, objective)
        finally:
            self.inner.learning_rate = rate
        self._num_steps += 1
        return metrics

    def weights(self) -> dict[str, Tensor]:
        return self.inner.weights()

    def save(self, folder: Path) -> None:
        self.inner.save(folder)
        (folder / _FILE).write_text(json.dumps({"num_steps": self._num_steps}))

    def resume(self, folder: Path) -> None:
        self.inner.resume(folder)
        try:
            self._num_steps = int(json.loads((folder / _FILE).read_text())["num_steps"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"cannot read the schedule in {folder}: {error}") from error


_BRANCHES = {"short": 0.0, "hybrid": 0.5, "long": 1.0}  # probability of a behaviour before each step of reasoning


def octothinker(
    setting: Setting = Setting(env="arithmetic:5"),
    branch: str = "hybrid",  # chains of thought in the decay stage: short, long or hybrid
    stable: int = 20,  # mid-training steps at a constant learning rate
    decay: int = 10,  # mid-training steps of the branch, with decaying learning rate
) -> Run:
    """Two stages of mid-training as warm-ups, then GRPO without a KL penalty."""
    if branch not in _BRANCHES:
        raise ConfigurationError(f"octothinker has no branch {branch!r}: {nearest(branch, _BRANCHES)}")
    run = setting.run("octothinker", GroupStandard(), (Clip(),))
    return replace(run, warmup=_mid_training(setting, _BRANCHES[branch], stable, decay))


def _mid_training(setting: Setting, probability: float, stable: int, decay: int) -> Run | None:
    first, branch = shown(setting, "octothinker", stable), shown(setting, "octothinker", decay)
    if branch is None:
        return first
    if not isinstance(branch.trainer, TorchTrainer):
        raise ConfigurationError(
            f"octothinker's learning-rate schedule needs one process: set ranks=1, got {setting.ranks}"
        )
    agent = Injected(Demonstrate(least=1.0), probability, probability, setting.seed)
    return replace(branch, agent=agent, trainer=StableThenDecay(branch.trainer, decay), warmup=first)
