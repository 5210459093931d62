"""RLVR-World: GRPO on a language world model, rewarded by the accuracy of its predicted state changes.

Title: RLVR-World: Training World Models with Reinforcement Learning
Paper: arXiv 2505.13934 (2025)
Claim: World models of language and video gain on their own metrics beyond what supervised training gives.
Reading: Supervised training on true changes first, then GRPO on the metric itself: F1 over changed items, as for web
    pages, or with form=exact whether all of them are right, as for text games. If nothing changes, predicting nothing
    is right, where the release gives 0. Group size and KL penalty were not found: those here are ours. The environment
    is a store of numbers and one action.
Left out: The text games' sum of partial rewards, and video.
Acts: reward/change_f1 > 0 and warmup/nll > 0 with warmup_steps=4, steps=1
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.bundled.next_state import NextState, items_in
from strop.errors import ConfigurationError, nearest
from strop.filter.rewards.from_environment import Earned
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Rollout

# A world model's reward (RLVR-World, 2505.13934): the match of predicted and true state changes.
#
# The release gives 0 if nothing changes and nothing is predicted; here that is right and earns 1.

FORMS = ("f1", "exact")


@dataclass(frozen=True)
class ChangeF1(Reward):
    """2 * common / (predicted + true) over sets of changed items; with form exact, whether both sets are equal.

    A completion that cannot be parsed earns 0. For tasks of `NextState`.
    """

    form: str = "f1"  # f1 or exact
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ConfigurationError(f"ChangeF1 has no form {self.form!r}: {nearest(self.form, FORMS)}")

    def problems(self, run: Run) -> list[str]:
        strange = [f"{env.name}:{env.level}" for env in run.envs if not isinstance(env, NextState)]
        return [f"answers of {name} are not state changes: use an environment such as next_state:3" for name in strange]

    def __call__(self, group: Group) -> list[float]:
        return [self._score(rollout) for rollout in group.rollouts]

    def _score(self, rollout: Rollout) -> float:
        predicted, true = items_in(rollout.completion), items_in(rollout.task.answer)
        assert true is not None
        if predicted is None:
            return 0.0
        return overlap(predicted, true) if self.form == "f1" else float(predicted == true)


def overlap(predicted: Set[str], true: Set[str]) -> float:
    """F1, the harmonic mean of precision and recall; 1 for two empty sets."""
    total = len(predicted) + len(true)
    return 2 * len(predicted & true) / total if total else 1.0


def rlvr_world(
    setting: Setting = Setting(env="next_state:3"),
    form: str = "f1",  # f1 of the changes, or exact
    warmup_steps: int = BundledOnly(20),  # supervised warm-up steps before RL
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """The reward is the metric by which world models are compared."""
    run = setting.run("rlvr_world", GroupStandard(), (Clip(), Kl("k3", kl)))
    run.warmup = shown(setting, "rlvr_world", warmup_steps)
    run.rewards = (ChangeF1(form), Earned(weight=0.0))
    return run
