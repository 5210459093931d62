"""RAG-RL: GRPO with a curriculum over the number of distractor passages; rewards for the answer and for citations.

Title: RAG-RL: Advancing Retrieval-Augmented Generation via RL and Curriculum Learning
Paper: arXiv 2503.12759 (2025)
Claim: Joint F1 on MuSiQue of 61.4 with easy tasks first, 56.4 with a linear order and 53.8 with hard ones alone.
Reading: 5 for the answer, 5 times the recall of gold passages, less 2 for each other one, and 1 for the format.
    Passages are steps of worked solutions, cited by quoting them. By the paper's own control the order matters less
    than that easy tasks are mixed in. Its sizes were not found; GRPO's defaults replace them. The bundled model has
    never chosen among passages, so a short supervised run comes before; the paper's model needs none.
Acts: uneven > 0 and reward/citations != 0 with warmup_steps=1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from strop.control.samplers.support.bandit_arms import BanditArms
from strop.control.samplers.support.bandit_metrics import shares
from strop.environments.bundled.passages import Passages, cited
from strop.environments.format.think_tags import CLOSE, final_number
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Environment, PassRateEstimator, Reward, Sampler
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Metrics, Rollout, Task

# RAG-RL's curricula (2503.12759): the order of levels is fixed before the run, and so is its shuffled control.
#
# Reading: the schedule counts sampled tasks, as the paper's counts samples; groups that gates drop count, too. After
# its end the schedule stays at its last level; a shuffled one starts again.

Shape: TypeAlias = Literal["max", "linear", "min-max"]


@dataclass
class Scheduled(Sampler):
    """Sampler whose task i of n is of level ceil(K i / n) (linear), of 1 and from the middle on K (min-max), or always
    K (max).

    `is_shuffled` is the control: the same levels equally often, in random order.
    """

    envs: tuple[Environment, ...]  # K levels, from easy to hard
    length: int  # n, in tasks
    shape: Shape = "min-max"
    is_shuffled: bool = False
    seed: int = 0  # of the shuffled order
    _arms: BanditArms = field(init=False, repr=False, compare=False)
    _order: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    _num_sampled: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._arms = BanditArms(self.envs)
        if self.length < 1 or self.shape not in ("max", "linear", "min-max"):
            raise ConfigurationError(
                f"Scheduled needs length >= 1 and shape max, linear or min-max, got {self.length} and {self.shape!r}"
            )
        if self.is_shuffled:
            self._order = [int(place) for place in np.random.default_rng(self.seed).permutation(self.length)]

    def arm(self, number: int) -> int:
        """The level of the task with this number, both from 0 on."""
        place = self._order[number % self.length] if self.is_shuffled else min(number, self.length - 1)
        hardest = len(self.envs) - 1
        if self.shape == "linear":
            return -(-len(self.envs) * (place + 1) // self.length) - 1
        return 0 if self.shape == "min-max" and 2 * place < self.length else hardest

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        self._num_sampled += 1
        return self._arms.take(self.arm(self._num_sampled - 1))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: share of each level in the batch."""
        return shares(self.envs, groups)

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_sampled, "arms": self._arms.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_sampled = int(state["num_drawn"])
        self._arms.restore(state["arms"])


# RAG-RL's citation reward (2503.12759): the share of gold passages quoted, less a price for each other one.
#
# Reading: the paper also rewards the format; here that is a chain of thought followed by a number, worth `form`.


@dataclass(frozen=True)
class Citations(Reward):
    """Reward recall * (gold quoted / gold) - price * (others quoted) + form; in tasks of `Passages`, 0 elsewhere."""

    recall: float = 5.0  # for all gold passages
    price: float = 2.0  # of each distractor
    form: float = 1.0  # for a chain of thought and a number
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self._paid(rollout) if group.task.source == Passages.name else 0.0 for rollout in group.rollouts]

    def _paid(self, rollout: Rollout) -> float:
        found = cited(rollout.task, rollout.completion)
        is_formed = CLOSE in rollout.completion and final_number(rollout.completion) != ""
        return self.recall * found.gold / found.of - self.price * found.wrong + self.form * is_formed


def rag_rl(
    setting: Setting = Setting(env="passages:1+passages:3+passages:5+passages:8"),
    shape: Shape = "min-max",  # or linear, or max: the hardest level alone
    is_shuffled: bool = False,  # control: the same levels in random order
    kl: float = 0.04,  # weight of the KL penalty to the reference
    warmup_steps: int = BundledOnly(6),  # of supervised training first
) -> Run:
    """Environments from easy to hard; the schedule ends with the last batch of the last step."""
    run = setting.run("rag_rl", GroupStandard(), (Clip(), Kl("k3", kl)), reduction=SequenceMean())
    length = setting.steps * setting.groups_per_step
    run.sampler = Scheduled(run.envs, length, shape, is_shuffled, setting.seed)
    run.rewards = (Earned(weight=5.0), Citations())
    run.warmup = shown(setting, "rag_rl", warmup_steps)
    return run
