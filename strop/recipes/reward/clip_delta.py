"""PPO with clipped, differenced process rewards (clip + delta) for each step, added to the success reward.

Title: On Designing Effective RL Reward at Training Time for LLM Reasoning
Paper: arXiv 2410.15115 (2024)
Claim: Process rewards that are clipped and differenced help models of 1.5B and 7B beyond the success reward; raw ones
    are exploited by repeated steps and make them worse.
Reading: The clipping threshold is the mean score of the group's steps. The weight relative to the success reward and
    PPO's hyperparameters were not found: those here are ours. A rule that checks calculations stands in for the process
    reward model. form also takes clip, delta and raw on their own.
Left out: Reward models of outcomes, and process reward models that are trained.
Acts: reward/clip_delta != 0 and advantage_within > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.errors import ConfigurationError, nearest
from strop.filter.judges.arithmetic_steps import Calculations, StepJudge
from strop.filter.paid_text import Paid, Span
from strop.recipes.setting import Setting
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic
from strop.types import Group

# Process rewards that repetition cannot raise (Gao et al., 2410.15115): clipped from above, then differenced.

FORMS = ("clip-delta", "clip", "delta", "raw")


@dataclass(frozen=True)
class ClipDelta(Reward):
    """Reward of step k of K at its last token, from the judge's scores p of the steps.

    clip: min(p_k - eta, 0), eta the mean of p over all steps of the group. delta: p_k - p_(k+1); p_k for step K - 1 and
    0 for step K. The return from step k on is then p_k, and only the task reward pays for the last step.
    clip-delta: differences of the clipped values. raw: p_k, which a policy exploits by repeating right steps.
    """

    judge: StepJudge = field(default_factory=Calculations)  # scores each step
    form: str = "clip-delta"  # clip-delta, clip, delta or raw
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # if its judge is
    is_relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ConfigurationError(f"unknown form of process rewards {self.form!r}: {nearest(self.form, FORMS)}")

    def __call__(self, group: Group) -> list[Paid]:
        found = [self.judge.steps(rollout) for rollout in group.rollouts]
        values = [step.value for steps in found for step in steps]
        eta = sum(values) / max(len(values), 1)
        return [self._paid(steps, eta) for steps in found]

    def _paid(self, steps: Sequence[Span], eta: float) -> Paid:
        rewards = [step.value for step in steps]
        if "clip" in self.form:
            rewards = [min(value - eta, 0.0) for value in rewards]
        if "delta" in self.form:
            rewards = differences(rewards)
        return Paid(0.0, tuple(replace(step, value=value) for step, value in zip(steps, rewards, strict=True)))


def differences(values: Sequence[float]) -> list[float]:
    """Each value minus the next one, with the last value set to 0."""
    zeroed = [*values[:-1], 0.0]
    return [value - after for value, after in zip(zeroed, [*zeroed[1:], 0.0], strict=True)][: len(values)]


def clip_delta(
    setting: Setting = Setting(),
    form: str = "clip-delta",  # clip-delta, clip, delta, or raw
    weight: float = 0.5,  # weight of the process reward; the success reward has 1
    clip: float = 0.2,  # PPO clip range of the importance ratio
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
) -> Run:
    """The process reward pays each step of the chain of thought at its last token, the environment the answer."""
    run = setting.run(
        "clip_delta",
        Gae(),
        (Clip(clip, clip), Kl("k2", kl)),
        values=Critic(device=setting.device),
        minibatches=4,
    )
    run.rewards = (*run.rewards, ClipDelta(form=form, weight=weight))
    return run
