"""FAPO-GenRM: GRPO for a judge that names the first wrong step; `fapo judge=FOLDER` uses it.

Reading: FAPO's first stage, as released: 16 rollouts at temperature 1.2, clip 0.2 and 0.28, token mean, no KL penalty,
    16 optimizer steps per batch, here four. Solutions are the bundled environments' own worked solutions, half of them
    with one wrong step, where the paper has those of models, labelled by a larger one. The bundled model has never
    judged solutions, so a short supervised warm-up comes first.
Acts: reward/error_distance > -1 and warmup/nll > 0 with warmup_steps=4, steps=1
Papers: fapo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.first_error import FirstError, truth
from strop.environments.judging.first_error_question import CLEAN, located
from strop.filter.rewards.from_environment import Earned
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Rollout

# Reward of a judge of steps (FAPO, 2510.22543): its verdict, and its distance to the first wrong step.


@dataclass(frozen=True)
class ErrorDistance(Reward):
    """1 if a clean solution is called clean, 1 - |named - wrong| / steps if a flawed one is called flawed.

    -1 if the verdict is wrong or the completion names no step of the solution. For tasks of `FirstError`.
    """

    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self._score(rollout) for rollout in group.rollouts]

    def _score(self, rollout: Rollout) -> float:
        wrong, steps = truth(rollout.task)
        named = located(rollout.completion, steps)
        if named is None or (named == CLEAN) != (wrong == CLEAN):
            return -1.0
        return 1.0 - abs(named - wrong) / steps


def fapo_genrm(
    setting: Setting = Setting(env="arithmetic:5", group_size=16, temperature=1.2),
    warmup_steps: int = BundledOnly(20),  # supervised warm-up steps before RL
    low: float = 0.2,  # importance ratios are clipped below 1 - low
    high: float = 0.28,  # importance ratios are clipped above 1 + high
    minibatches: int = 4,  # optimizer steps per batch
) -> Run:
    """The judge is rewarded for its verdict and for the distance between the named and the wrong step."""
    run = setting.run("fapo_genrm", GroupStandard(), (Clip(low, high),), minibatches=minibatches)
    run.warmup = shown(setting, "fapo_genrm", warmup_steps)
    wrap_envs(run, lambda env: (FirstError(env),))
    run.rewards = (ErrorDistance(), Earned(weight=0.0))
    return run
