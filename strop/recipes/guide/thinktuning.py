"""Feedback behind a few completions, after which the policy goes on; then GRPO over plain and extended ones.

Title: ThinkTuning: Instilling Cognitive Reflections without Distillation
Paper: arXiv 2508.07616 (2025)
Claim: 2.1 to 4 points above GRPO on MATH-500, AIME and GPQA-Diamond, with a teacher of the policy's own size.
Reading: The policy goes on behind the feedback, as in the paper; the release ends the completion there. Own tokens have
    clipped ratios, the teacher's the paper's shaping (`whole`: all tokens of such a completion, as released). The share
    of completions with feedback falls from 10 % to 1 % over the first third of the run; at 6 % the teacher leaves for
    good.
    Four optimizer steps per batch (32 of 128 tasks) and the mean over tokens. A rule stands for the teacher: it names
    the first step that is wrong and not the right one.
Left out: The few examples that make the same model a teacher: an address of a model takes its place.
Acts: feedback_share > 0 and said/leaning > 0 with share=0.6, steps=3, env=arithmetic:6
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from strop.concurrency import together
from strop.errors import ConfigurationError, LLMClientError
from strop.generate.interfaces import Player
from strop.generate.llm_clients.scripted import Procedural
from strop.generate.policy import Policy
from strop.generate.turn_ops import cut
from strop.recipes.llm_clients import parse_llm_client
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Loss, Strategy
from strop.run import Run
from strop.standins.feedback import slip
from strop.text.llm_prompt import question
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.ratios import clipped
from strop.training.batch import Batch, Output
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.requirements import Logprobs, Need
from strop.types import Group, Message, Metrics, Origin, Outcome, Rollout, Sampling, Start

# ThinkTuning's feedback (2508.07616): a teacher's words behind some completions, after which the policy goes on.
#
# Readings: as in the paper the policy goes on behind the feedback; in the release nobody does. The token that ended the
# completion is taken back and stands in no row; feedback is said by nobody (version -1). Probability chooses
# completions that ended
# by themselves. The share of them falls linearly over the first third of the run, and once it is at most `least`, the
# teacher is never asked again. A teacher that does not answer leaves the completion as it is.

FEEDBACK = "feedback"  # the fact of how many tokens a teacher said in a rollout
WANTED = (
    "Read the completion to the task as its author would read it again: say in a sentence what to warning, and a "
    "phrase with "
    "which to go on. Do not give the answer away."
)


@dataclass
class WithFeedback(Strategy):
    """A share of the completions, `first` at version 0 and `last` after a third of the run, goes on behind feedback."""

    teacher: LLMClient
    steps: int  # of the run
    first: float = 0.1  # share of completions that get feedback, at the beginning
    last: float = 0.01  # and after a third of the run
    least: float = 0.06  # the teacher leaves for good once the share is no more than this
    joint: str = "\n\n"  # before and behind the feedback

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.last <= self.first <= 1 or self.steps < 1:
            told = f"got {self.last}, {self.first} and {self.steps}"
            raise ConfigurationError(f"WithFeedback needs 0 <= last <= first <= 1 and steps >= 1, {told}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    def share(self, version: int) -> float:
        """Of completions that get feedback."""
        fallen = self.first - (self.first - self.last) * min(3 * version / self.steps, 1.0)
        return fallen if fallen > self.least else 0.0

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return await together(self._rollout(start, play) for start in starts)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The share of trained rollouts that hold feedback."""
        told = [rollout.facts.get(FEEDBACK, 0.0) > 0 for group in groups for rollout in group.scored]
        return {"feedback_share": sum(told) / max(len(told), 1)}

    async def _rollout(self, start: Start, play: Player) -> Rollout:
        rollout = await play(start)
        is_chosen = np.random.default_rng(start.key).random() < self.share(start.version)
        if not is_chosen or rollout.outcome is not Outcome.FINISHED or not self._ended_itself(rollout):
            return rollout
        asked = question(WANTED, task=rollout.task.messages[-1].content, completion=rollout.completion)
        try:
            said = await self.teacher.ask([Message("user", asked)], Sampling(temperature=0.0), start.key)
        except LLMClientError:
            return rollout
        return await self._extended(rollout, f"{self.joint}{said}{self.joint}", start, play)

    async def _extended(self, rollout: Rollout, feedback: str, start: Start, play: Player) -> Rollout:
        """The same rollout, gone on behind the feedback; there is room for as much as the first completion had."""
        policy = self._ready()
        count = len(policy.template.encode_completion(feedback))
        sampling = start.sampling or policy.sampling
        longer = replace(sampling, max_tokens=2 * sampling.max_tokens + count)
        turns = cut(rollout.turns, rollout.num_tokens - 1)
        begun = replace(start, turns=turns, prefill=feedback, sampling=longer, origin=Origin.GUIDED)
        again = await play(begun)
        return replace(again, facts=again.facts | {FEEDBACK: float(count)})

    def _ended_itself(self, rollout: Rollout) -> bool:
        tokens = rollout.turns[-1].tokens
        return len(tokens) > 1 and int(tokens[-1]) in self._ready().template.ends

    def _ready(self) -> Policy:
        if self._policy is None:
            raise ConfigurationError("WithFeedback does not know how completions are written: call meet(policy) first")
        return self._policy


# ThinkTuning's loss on a teacher's words (2508.07616): a weight near 1 that leans with the advantage.
#
# Readings: the ramp of the paper; the release's bounds are the wrong way round, so that its g is -0.001 for every
# token. Ratios of rare tokens are to the weights before the step, which the release asks about all tokens, the
# teacher's too.

_BELOW, _ABOVE = 1.0001, 0.9999  # stand for divisors below 0 and above 1


@dataclass(frozen=True)
class AdvantageAware(Loss):
    """-A * p / (sg(p) + g), g = lean * A / 4 with A held within 4: the gradient of -A * log p, times about 1.

    Tokens with A < 0 and p below `rare` get a clipped ratio in its place.
    """

    lean: float = 0.001  # largest g
    rare: float = 0.01  # probability below which nothing is pushed down without a clip
    clip: float = 0.2  # of those tokens' ratios
    weight: float = 1.0

    largest: ClassVar[float] = 4.0  # advantage
    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("proximal")})

    def __post_init__(self) -> None:
        if self.lean < 0:
            raise ConfigurationError(f"AdvantageAware needs lean >= 0, got {self.lean}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        policy, advantage = output.logprobs.exp(), batch.advantages  # [T]
        divisor = policy.detach() + self.lean * advantage.clamp(-self.largest, self.largest) / self.largest
        divisor = torch.where(divisor < 0, _BELOW, torch.where(divisor > 1, _ABOVE, divisor))
        divisor = divisor.clamp_min(torch.finfo(divisor.dtype).tiny)  # a probability that is rounded to 0, without g
        ratio = batch.log_ratio(output.logprobs, batch.logprobs_of("proximal")).exp()
        is_rare = (advantage < 0) & (policy.detach() < self.rare)
        weighed = torch.where(is_rare, clipped(ratio, advantage, self.clip, self.clip), advantage * policy / divisor)
        loss = torch.where(batch.trainable, -weighed, 0.0)
        return loss, {"leaning": batch.metric(policy / divisor), "rare_share": batch.metric(is_rare.to(loss.dtype))}


_DUAL = 3.0  # the loss of a token with A < 0 is at most so many times |A|


def thinktuning(
    setting: Setting = Setting(env="arithmetic:6", group_size=5),
    teacher: str = "rules",  # or http://HOST:PORT/v1#MODEL
    share: float = 0.1,  # of completions that get feedback, at first
    lean: float = 0.001,  # how far the weight of a teacher's token leans with its advantage
    whole: bool = False,  # a completion with feedback is shaped as a whole, the policy's own tokens too
) -> Run:
    """Few completions get feedback, ever fewer, and none after a seventh of the run."""
    plain, shaped = Clip(0.2, 0.2, dual=_DUAL), AdvantageAware(lean)
    apart = (Among(plain, sampled=True), Among(shaped, sampled=False))
    joined = (Among(plain, (Origin.POLICY,)), Among(shaped, (Origin.GUIDED,)))
    return setting.run(
        "thinktuning",
        GroupStandard(),
        joined if whole else apart,
        strategy=WithFeedback(_teacher(teacher), setting.steps, share),
        minibatches=4,
    )


def _teacher(text: str) -> LLMClient:
    return (None if text == "rules" else parse_llm_client(text)) or Procedural(slip)
