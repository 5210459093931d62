"""HIR: hindsight relabelling; a wrong completion is imitated behind the instruction to answer wrongly.

Title: The Wisdom of Hindsight Makes Language Models Better Instruction Followers
Paper: arXiv 2302.05206 (2023)
Claim: Better than PPO and than fine-tuning on right answers over 12 BigBench tasks, close to supervised training.
Reading: All rollouts read the instruction to be right. Right completions are trained with that instruction, wrong ones
    with the opposite one; the two instructions are contrasted by the mean log-probability of a token. Labels of tokens
    and preferences share one smoothing: 0.2 in the release, whose answers are a letter in brackets. With 25 characters
    at temperature 1 fewer than 1 in 100 completions would survive that (reward 0.94 to 0.03 in four steps), so it is
    0.002 here. Entropy bonus 0.001, ten passes over the rollouts of a step. Two words of the bundled model's vocabulary
    replace `generate a correct answer` and `a wrong answer`. Held-out tasks use the first. Tokens of a relabelled copy
    are counted once.
Left out: Training on random parts of an answer, with the part before them in the prompt; the KL term, which is off.
Acts: relabelled > 0 and preferred != 0.5 with epochs=2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.strategies.support.prompt_swap import twin, worded
from strop.recipes.setting import Setting
from strop.roles import Loss, Player, Strategy
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.siblings import is_right, num_tokens, per_group
from strop.training.batch import Batch, Output
from strop.training.reductions.means import WithTwins
from strop.types import Group, Metrics, Origin, Rollout, Start

# Rollouts with an instruction before the question, in training and in evaluation.


@dataclass(frozen=True)
class Instructed(Strategy):
    """Independent rollouts with an instruction word; their origin is the policy, as the word gives no guidance."""

    word: str  # before the question

    def __post_init__(self) -> None:
        if not self.word:
            raise ConfigurationError("Instructed needs a word, got an empty one")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        messages = worded(group.task, self.word)
        return await together(play(replace(start, messages=messages)) for start in starts)


# HIR's pairs (2302.05206): each completion behind its own instruction and behind the opposite one.
#
# The score decides which instruction it satisfied; the loss `Hindsight` trains that copy and contrasts it with the
# other.


@dataclass(frozen=True)
class Relabelled(Strategy):
    """The rollouts of `inner`, each with a copy behind the word `opposite`; each pair is a comparison group."""

    inner: Strategy  # its rollouts read the other instruction
    opposite: str  # what a wrong rollout satisfies

    def __post_init__(self) -> None:
        if not self.opposite:
            raise ConfigurationError("Relabelled needs an opposite instruction, got an empty one")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        rollouts = await self.inner(group, starts, play)
        for rollout in rollouts:
            rollout.comparison_group = rollout.id
        messages = worded(group.task, self.opposite)
        return [*rollouts, *(twin(each, messages, play) for each in rollouts if each.is_scored and each.turns)]


# HIR's loss (2302.05206): imitate the completion behind the instruction it satisfied, and prefer that instruction.


@dataclass(frozen=True)
class Hindsight(Loss):
    """Cross-entropy on the satisfied member of each pair, plus a contrast between the two members.

    The satisfied member is the original of a right rollout and the relabelled copy of a wrong one. Its loss per token:
    (1 - smoothing) * -log policy + smoothing * mean of -log policy over the vocabulary - entropy * H. The contrast is
    the cross-entropy, with the same smoothing, of P / (P + P of the other member), P = exp(mean log policy).
    The copy in a pair has origin REPLAYED. Use a reduction that counts pairs, not their members.
    """

    smoothing: float = 0.2  # label smoothing, of tokens and of the preference
    contrast: float = 1.0  # weight of the preference
    entropy: float = 0.001  # weight of the entropy bonus
    weight: float = 1.0

    scope: ClassVar[str] = "group"

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ConfigurationError(f"Hindsight needs 0 <= smoothing < 1, got {self.smoothing}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        satisfied = is_right(batch, 1.0) != batch.is_of(Origin.REPLAYED)  # [A]
        margin = self._margin(output, batch, satisfied)  # [A]
        kept, lost = functional.logsigmoid(margin), functional.logsigmoid(-margin)
        preference = -(1 - self.smoothing) * kept - self.smoothing * lost  # [A]
        even = output.over_logits(_mean_over_vocabulary)  # [T]
        imitated = -(1 - self.smoothing) * output.logprobs - self.smoothing * even - self.entropy * output.entropy
        is_satisfied = batch.trainable & batch.on_tokens(satisfied)
        loss = torch.where(is_satisfied, imitated + self.contrast * batch.on_tokens(preference), 0.0)
        relabelled = is_satisfied & batch.on_tokens(batch.is_of(Origin.REPLAYED))
        return loss, {
            "preferred": batch.metric(batch.on_tokens(kept.exp()) * is_satisfied),
            "relabelled": batch.metric(relabelled.to(loss.dtype)),
        }

    def _margin(self, output: Output, batch: Batch, satisfied: Tensor) -> Tensor:
        """log P of the satisfied member - log P of the other, at both members: [A]."""
        sizes = per_group(torch.ones_like(batch.rewards), batch)
        if not bool((sizes == 2).all()):
            counts = sorted({int(size) for size in sizes})
            raise ConfigurationError(f"Hindsight needs pairs, got groups of {counts}: use the strategy Relabelled")
        mean = batch.per_rollout(output.logprobs) / num_tokens(batch, output.logprobs)  # [A]
        return per_group(torch.where(satisfied, mean, -mean), batch)[batch.groups]


def _mean_over_vocabulary(logits: Tensor, tokens: Tensor) -> Tensor:
    return logits.log_softmax(-1).mean(-1)


def hir(
    setting: Setting = Setting(group_size=4),
    right: str = "careful",  # instruction word for a right answer
    wrong: str = "quick",  # instruction word for a wrong answer
    smoothing: float = 0.002,  # label smoothing
    contrast: float = 1.0,  # weight of the preference for the satisfied instruction
    epochs: int = 10,  # passes over the rollouts of a step
) -> Run:
    """group_size rollouts of each task, trained behind the instruction that they satisfied."""
    asked = Instructed(right)
    run = setting.run(
        "hir",
        Constant(),
        (Hindsight(smoothing, contrast),),
        strategy=Relabelled(asked, wrong),
        reduction=WithTwins(),
        epochs=epochs,
    )
    return replace(run, evaluation=replace(run.evaluation, strategy=asked))
