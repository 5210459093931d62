"""PPO with clipped, differenced process rewards (clip + delta) for each step, added to the success reward.

Title: On Designing Effective RL Reward at Training Time for LLM Reasoning
Paper: arXiv 2410.15115 (2024)
Claim: Process rewards that are clipped and differenced help models of 1.5B and 7B beyond the success reward; raw ones
    are exploited by repeated steps and make them worse.
Reading: The clipping threshold is the mean score of the group's steps. The weight relative to the success reward and
    PPO's hyperparameters were not found: those here are ours. A rule that checks calculations stands in for the process
    reward model on bundled environments; elsewhere a model scores each step (`judge=`). form also takes clip, delta and
    raw on their own.
Left out: Reward models of outcomes, and process reward models that are trained.
Acts: reward/clip_delta != 0 and advantage_within > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.errors import ConfigurationError, nearest
from strop.filter.judges.arithmetic_steps import Calculations, StepJudge, WorkedSteps
from strop.filter.judges.batch_ask import all_of, judged_or_none, text_of
from strop.filter.judges.readers import PerItem
from strop.filter.paid_text import Paid, Span
from strop.recipes.named_parts import check_rules, named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.text.llm_prompt import judgement
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic
from strop.types import Group, Rollout, Sampling

# Process rewards that repetition cannot raise (Gao et al., 2410.15115): clipped from above, then differenced.

SCORED = (
    "The steps of one solution are numbered. How likely is each of them right, given those before it, from 0 (surely "
    "wrong) to 100 (surely right)? One line each, as in 2: 40"
)
_TOKENS, _EACH = 256, 8  # of an answer: for all steps, and for each
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
        return self._all([self.judge.steps(rollout) for rollout in group.rollouts])

    def _all(self, found: Sequence[Sequence[Span]]) -> list[Paid]:
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


@dataclass(frozen=True)
class AskedClipDelta(ClipDelta):
    """The same where a model scores the steps; rollouts whose scores cannot be read have no process reward."""

    judge: StepJudge = field(default_factory=WorkedSteps)  # where steps are
    client: LLMClient | None = None  # scores each step
    prompt: str = SCORED  # what it is asked, below task and numbered steps

    name: ClassVar[str] = "clip_delta"

    async def __call__(self, group: Group) -> list[Paid]:  # type: ignore[override]
        return self._all(await all_of(self._scored(rollout) for rollout in group.rollouts))

    async def _scored(self, rollout: Rollout) -> list[Span]:
        assert self.client is not None
        steps = self.judge.steps(rollout)
        if not steps:
            return []
        texts = [rollout.turns[step.turn].message.content[step.start : step.end] for step in steps]
        shown = "\n".join(f"{number}: {' '.join(text.split())}" for number, text in enumerate(texts, start=1))
        asked = judgement(self.prompt, task=text_of(rollout.task), steps=shown)
        exact = Sampling(temperature=0.0, max_tokens=_TOKENS + _EACH * len(steps))
        scores = await judged_or_none(self.client, asked, PerItem(len(steps)), exact)
        return [replace(step, value=score) for step, score in zip(steps, scores or (), strict=False)]


def differences(values: Sequence[float]) -> list[float]:
    """Each value minus the next one, with the last value set to 0."""
    zeroed = [*values[:-1], 0.0]
    return [value - after for value, after in zip(zeroed, [*zeroed[1:], 0.0], strict=True)][: len(values)]


def clip_delta(
    setting: Setting = Setting(),
    judge: str = "rules",  # scores each step (a named part)
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
    if judge == "rules":
        check_rules("judge", setting)
        run.rewards = (*run.rewards, ClipDelta(form=form, weight=weight))
        return run
    client = named_part("judge", judge, setting)
    run.rewards = (*run.rewards, AskedClipDelta(form=form, weight=weight, client=client))
    run.reward_seconds = reward_seconds(judge)
    return run
