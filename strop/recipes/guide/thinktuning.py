"""ThinkTuning: GRPO with teacher feedback inserted into some completions, after which the policy continues.

Title: ThinkTuning: Instilling Cognitive Reflections without Distillation
Paper: arXiv 2508.07616 (2025)
Claim: 2.1 to 4 points above GRPO on MATH-500, AIME and GPQA-Diamond, with a teacher of the policy's own size.
Reading: The policy continues after the feedback, as in the paper; the release ends the completion there. Own tokens
    have PPO clipping, the teacher's tokens the paper's advantage-aware shaping (`whole`: all tokens of such a
    completion, as in the release). The share of completions with feedback falls from 10 % to 1 % over the first third
    of the run; from 6 % on there is no feedback. Four optimizer steps per batch (32 of 128 tasks) and the mean over
    tokens. A stand-in rule replaces the teacher: it names the first wrong step without correcting it.
Left out: The few-shot prompt that makes the same model a teacher; teacher= takes the address of a model instead.
Acts: feedback_share > 0 and said/leaning > 0 with share=0.6, steps=3, env=arithmetic:6
Break: strategy.least=1: the teacher is mute
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
from strop.filter.judges.batch_ask import heard
from strop.generate.policy import Policy
from strop.generate.turn_ops import cut
from strop.recipes.named_parts import named_part
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, Loss, Player, Strategy
from strop.run import Run
from strop.standins.feedback import slip
from strop.text.llm_prompt import question
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.ratios import clipped
from strop.training.batch import Batch, Output
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.requirements import Logprobs, Need
from strop.types import Group, Message, Metrics, Origin, Outcome, Rollout, Sampling, Start, Task

# ThinkTuning's feedback (2508.07616): teacher text after some completions, from which the policy continues.
#
# Readings: the policy continues after the feedback as in the paper; in the release the completion ends. The end token
# before the feedback is removed and not trained on; feedback tokens have version -1 (no policy sampled them). Only
# completions that ended by themselves are chosen, at random. Their share falls linearly over the first third of the
# run; once it is at most `least`, the teacher is not asked any more. If the teacher fails, the completion stays as is.

FEEDBACK = "feedback"  # the fact that holds the number of feedback tokens in a rollout
WANTED = (
    "Read the completion to the task as its author would read it again: say in a sentence what to question, and a "
    "phrase with which to go on. Do not give the answer away."
)
_DOUBTED = "I think the answer is 1."  # completion that is shown before the run


@dataclass
class WithFeedback(Strategy, Asks):
    """Rollouts of which a share, from `first` to `last` over a third of the run, continues after feedback."""

    teacher: LLMClient
    steps: int  # of the run
    first: float = 0.1  # share of completions with feedback at version 0
    last: float = 0.01  # share after a third of the run
    least: float = 0.06  # no feedback once the share is at most this
    joint: str = "\n\n"  # text before and after the feedback
    prompt: str = WANTED  # what the teacher is asked, below the task and the completion
    tokens: int = 256  # most tokens of the feedback

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.last <= self.first <= 1 or self.steps < 1:
            got = f"got {self.last}, {self.first} and {self.steps}"
            raise ConfigurationError(f"WithFeedback needs 0 <= last <= first <= 1 and steps >= 1, {got}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    def share(self, version: int) -> float:
        """Share of completions that get feedback."""
        fallen = self.first - (self.first - self.last) * min(3 * version / self.steps, 1.0)
        return fallen if fallen > self.least else 0.0

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return await together(self._rollout(start, play) for start in starts)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The share of trained rollouts that hold feedback."""
        has_feedback = [rollout.facts.get(FEEDBACK, 0.0) > 0 for group in groups for rollout in group.scored]
        return {"feedback_share": sum(has_feedback) / max(len(has_feedback), 1)}

    async def _rollout(self, start: Start, play: Player) -> Rollout:
        rollout = await play(start)
        is_chosen = np.random.default_rng(start.key).random() < self.share(start.version)
        if not is_chosen or rollout.outcome is not Outcome.FINISHED or not self._ended_itself(rollout):
            return rollout
        try:
            feedback = await self._feedback(rollout.task, rollout.completion, start.key)
        except LLMClientError:
            return rollout
        return await self._extended(rollout, f"{self.joint}{feedback}{self.joint}", start, play)

    async def try_clients(self, task: Task) -> None:
        await self._feedback(task, _DOUBTED, 0)

    async def _feedback(self, task: Task, completion: str, key: int) -> str:
        asked = question(self.prompt, task=task.messages[-1].content, completion=completion)
        sampling = Sampling(temperature=0.0, max_tokens=self.tokens)
        return heard(self.teacher, await self.teacher.ask([Message("user", asked)], sampling, key))

    async def _extended(self, rollout: Rollout, feedback: str, start: Start, play: Player) -> Rollout:
        """The rollout, continued after the feedback with the token limit of the first completion once more."""
        policy = self._ready()
        count = len(policy.template.encode_completion(feedback))
        sampling = start.sampling or policy.sampling
        longer = replace(sampling, max_tokens=2 * sampling.max_tokens + count)
        turns = cut(rollout.turns, rollout.num_tokens - 1)
        prefix = replace(start, turns=turns, prefill=feedback, sampling=longer, origin=Origin.GUIDED)
        again = await play(prefix)
        return replace(again, facts=again.facts | {FEEDBACK: float(count)})

    def _ended_itself(self, rollout: Rollout) -> bool:
        tokens = rollout.turns[-1].tokens
        return len(tokens) > 1 and int(tokens[-1]) in self._ready().template.ends

    def _ready(self) -> Policy:
        if self._policy is None:
            raise ConfigurationError("WithFeedback has no policy yet: call meet(policy) first")
        return self._policy


# ThinkTuning's loss on teacher tokens (2508.07616): a weight near 1 that depends on the advantage.
#
# Readings: the ramp is the paper's; the release swaps its bounds, so that its g is -0.001 for every token. Ratios of
# rare tokens are relative to the policy before the step, which the release computes for all tokens, the teacher's too.

_BELOW, _ABOVE = 1.0001, 0.9999  # replace divisors below 0 and above 1


@dataclass(frozen=True)
class AdvantageAware(Loss):
    """-A * p / (sg(p) + g), g = lean * A / 4 with A clamped to [-4, 4]: the gradient of -A * log p, times about 1.

    Tokens with A < 0 and p below `rare` get PPO clipping instead.
    """

    lean: float = 0.001  # largest g
    rare: float = 0.01  # probability below which a negative advantage gets PPO clipping
    clip: float = 0.2  # clip range for those tokens
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
        divisor = divisor.clamp_min(torch.finfo(divisor.dtype).tiny)  # a probability may round to 0
        ratio = batch.log_ratio(output.logprobs, batch.logprobs_of("proximal")).exp()
        is_rare = (advantage < 0) & (policy.detach() < self.rare)
        weighed = torch.where(is_rare, clipped(ratio, advantage, self.clip, self.clip), advantage * policy / divisor)
        loss = torch.where(batch.trainable, -weighed, 0.0)
        return loss, {"leaning": batch.metric(policy / divisor), "rare_share": batch.metric(is_rare.to(loss.dtype))}


_DUAL = 3.0  # dual clip: the loss of a token with A < 0 is at most 3 * |A|


def thinktuning(
    setting: Setting = Setting(env="arithmetic:6", group_size=5),
    teacher: str = "rules",  # writes feedback (a named part)
    share: float = 0.1,  # initial share of completions with feedback
    lean: float = 0.001,  # how much the advantage changes the weight of a teacher token
    whole: bool = False,  # shape all tokens of a completion with feedback, the policy's own too
) -> Run:
    """A falling share of completions gets feedback, none after a seventh of the run."""
    plain, shaped = Clip(0.2, 0.2, dual=_DUAL), AdvantageAware(lean)
    apart = (Among(plain, sampled=True), Among(shaped, sampled=False))
    joined = (Among(plain, (Origin.POLICY,)), Among(shaped, (Origin.GUIDED,)))
    return setting.run(
        "thinktuning",
        GroupStandard(),
        joined if whole else apart,
        strategy=WithFeedback(named_part("teacher", teacher, setting, slip, ("arithmetic",)), setting.steps, share),
        minibatches=4,
    )
