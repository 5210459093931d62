"""V-Triune: GRPO over several environments, each with its own verifier; overlap rewards with a rising threshold.

Title: One RL to See Them All: Visual Triple Unified Reinforcement Learning
Paper: arXiv 2505.18129 (2025)
Claim: Models of 7B and 32B gain 2.1 to 14.1 points on MEGA-Bench Core over their base.
Reading: A task's environment stands in for the reward specification of a sample. Environments whose answers are numbers
    are rewarded for the overlap of intervals around them, the one-dimensional form of the overlap (IoU) of boxes, with
    the paper's thresholds: 0.85 for a tenth of the run, 0.95 up to a quarter, then 0.99; all other environments use
    their own check. With a width of 40 a number that is off by 2 is accepted at first, one off by 1 a while longer.
    Tags of the layout count one by one. The weights of accuracy and layout, and the optimizer's hyperparameters, were
    not found: 0.9 and 0.1, one optimizer step per batch.
Left out: Pictures, several boxes that are matched, the frozen vision tower, and a server for verifiers.
Acts: threshold > 0.85 and reward_by/* > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.capabilities import Learns, outermost
from strop.environments.format.think_tags import CLOSE, OPEN
from strop.environments.needs import first_tasks
from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.filter.rewards.from_environment import LastCompletion
from strop.recipes.environment_specs import measured
from strop.recipes.reward.v_triune.reward import Overlap, Tightening, number_in
from strop.recipes.setting import Setting
from strop.roles import Environment, Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics

# One run over many kinds of tasks (V-Triune, 2505.18129), each with its own verifier and weight of layout.


@dataclass(frozen=True)
class Verifier:
    """Verifier of one source of tasks: accuracy * check + (1 - accuracy) * layout."""

    source: str  # the name of an environment
    check: Reward  # from 0 to 1
    accuracy: float = 0.9  # weight of `check`; the rest is the layout's


@dataclass(frozen=True)
class PerSource(Reward):
    """Reward by the verifier of the task's source; a source without a verifier is an error."""

    verifiers: tuple[Verifier, ...]
    layout: Reward  # from 0 to 1
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # if the rewards it holds are
    name: ClassVar[str] = "per_source"
    teaches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for each in self.verifiers:
            if not 0 <= each.accuracy <= 1:
                raise ConfigurationError(f"a verifier needs 0 <= accuracy <= 1, got {each.accuracy}")

    def __call__(self, group: Group) -> RewardScores:
        verifier = self._verifier(group.task.source)

        def mixed(right: Sequence[float], layout: Sequence[float]) -> list[float]:
            share = verifier.accuracy
            return [share * one + (1 - share) * other for one, other in zip(right, layout, strict=True)]

        return shaped(self, group, mixed, verifier.check, self.layout)

    def _verifier(self, source: str) -> Verifier:
        found = next((each for each in self.verifiers if each.source == source), None)
        if found is None:
            known = ", ".join(each.source for each in self.verifiers)
            raise ConfigurationError(f"PerSource has no verifier for {source!r}, only for {known}")
        return found

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Report the mean reward by source and the verifiers' own metrics; keeps no state."""
        found: Metrics = {}
        for _, part in outermost(self.layout, Learns):
            found |= part.learn(groups)
        for verifier in self.verifiers:
            own = [group for group in groups if group.task.source == verifier.source]
            scores = [rollout.reward for group in own for rollout in group.scored]
            if scores:
                found[f"reward_by/{verifier.source}"] = sum(scores) / len(scores)
            for _, part in outermost(verifier, Learns):
                found |= part.learn(own)
        return found


# Reward for the layout of a completion, tag by tag (V-Triune, 2505.18129): 1/4 for each of four.


@dataclass(frozen=True)
class TagShare(Reward):
    """Share of the tags that occur exactly once in the last completion."""

    tags: tuple[str, ...] = (OPEN, CLOSE)
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.tags or not all(self.tags):
            raise ConfigurationError(f"TagShare needs tags, got {self.tags}")

    def __call__(self, group: Group) -> list[float]:
        completions = [rollout.completion for rollout in group.rollouts]
        return [sum(completion.count(tag) == 1 for tag in self.tags) / len(self.tags) for completion in completions]


def v_triune(
    setting: Setting = Setting(env="arithmetic:5+countdown:3"),
    accuracy: float = 0.9,  # weight of the check; the rest is the layout's
    width: float = 40.0,  # of the interval around a number
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """The environments' own rewards are logged with weight 0."""
    run = setting.run("v_triune", GroupStandard(), (Clip(clip, clip),))
    names = dict.fromkeys(env.name for env in run.envs)
    verifiers = (_verifier(name, run.envs, setting.steps, width, accuracy) for name in names)
    run.rewards = (PerSource(tuple(verifiers), TagShare()), measured(run.envs))
    return run


def _verifier(name: str, envs: tuple[Environment, ...], steps: int, width: float, accuracy: float) -> Verifier:
    own = tuple(env for env in envs if env.name == name)
    is_number = all(number_in(task.answer) is not None for env in own for task in first_tasks(env))
    return Verifier(name, Tightening(Overlap(own, width), steps) if is_number else LastCompletion(own), accuracy)
