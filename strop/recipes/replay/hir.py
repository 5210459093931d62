"""Nothing is thrown away: a wrong rollout is a right answer to the instruction to be wrong.

Title: The Wisdom of Hindsight Makes Language Models Better Instruction Followers
Paper: arXiv 2302.05206 (2023)
Claim: Better than PPO and than fine-tuning on right answers over 12 BigBench tasks, close to supervised training.
Reading: All rollouts are asked to be right; what was right is trained behind that instruction, what was wrong behind
    the opposite one, each against the other by the mean log-probability of a token. Labels of tokens and preference are
    smoothed alike, by 0.2 in the release, whose answers are a letter in brackets; of 25 characters at temperature 1 not
    one in a hundred would come out as it was meant (reward 0.94 to 0.03 in four steps), so here it is 0.002. Entropy
    0.001, ten passes over the rollouts of a round, which is a step. Two words that the bundled model knows stand for
    `generate a correct answer` and `a wrong answer`. Held-out tasks are asked with the first. A twin's tokens are
    counted once.
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
from strop.generate.interfaces import Player
from strop.generate.strategies.support.prompt_word import worded
from strop.generate.strategies.support.rollout_twins import twin
from strop.recipes.setting import Setting
from strop.roles import Loss, Strategy
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.siblings import is_right, num_tokens, per_group
from strop.training.batch import Batch, Output
from strop.training.reductions.with_twins import WithTwins
from strop.types import Group, Metrics, Origin, Rollout, Start

# Rollouts that read an instruction before the question, in training and wherever the policy is measured.


@dataclass(frozen=True)
class Instructed(Strategy):
    """Independent rollouts; the instruction is no help, but how this policy is asked: they are its own."""

    word: str  # before the question

    def __post_init__(self) -> None:
        if not self.word:
            raise ConfigurationError("Instructed needs a word, got an empty one")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        messages = worded(group.task, self.word)
        return await together(play(replace(start, messages=messages)) for start in starts)


# HIR's pairs (2302.05206): what was written, behind the instruction it was asked with and behind the opposite one.
#
# Which of both it satisfied is known once it is scored; the loss `Hindsight` trains that one and sets it against the
# other.


@dataclass(frozen=True)
class Relabelled(Strategy):
    """The rollouts of `inner`, each with a twin that reads `opposite` before the question; a pair is a comparison
    group.
    """

    inner: Strategy  # asks with the other instruction
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


# HIR's loss (2302.05206): imitate what was written behind the instruction that it satisfied, and prefer that one.


@dataclass(frozen=True)
class Hindsight(Loss):
    """Of a pair, the right rollout as it was asked or the wrong one behind the opposite instruction is the one meant.

    (1 - smoothing) * -log policy + smoothing * the mean of -log policy over the vocabulary, per token of the one meant,
    - entropy * H, and the cross-entropy, smoothed alike, of P / (P + P of the other), P = exp(mean log policy).
    The twin of a pair is REPLAYED. Pair it with a reduction that counts pairs, not their members.
    """

    smoothing: float = 0.2  # of the labels, of tokens and of the preference
    contrast: float = 1.0  # weight of the preference
    entropy: float = 0.001  # bonus for an undecided next token
    weight: float = 1.0

    scope: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ConfigurationError(f"Hindsight needs 0 <= smoothing < 1, got {self.smoothing}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        meant = is_right(batch, 1.0) != batch.is_of(Origin.REPLAYED)  # [A]
        margin = self._margin(output, batch, meant)  # [A]
        kept, lost = functional.logsigmoid(margin), functional.logsigmoid(-margin)
        preference = -(1 - self.smoothing) * kept - self.smoothing * lost  # [A]
        even = output.over_logits(_mean_over_vocabulary)  # [T]
        imitated = -(1 - self.smoothing) * output.logprobs - self.smoothing * even - self.entropy * output.entropy
        is_meant = batch.trainable & batch.on_tokens(meant)
        loss = torch.where(is_meant, imitated + self.contrast * batch.on_tokens(preference), 0.0)
        relabelled = is_meant & batch.on_tokens(batch.is_of(Origin.REPLAYED))
        return loss, {
            "preferred": batch.metric(batch.on_tokens(kept.exp()) * is_meant),
            "relabelled": batch.metric(relabelled.to(loss.dtype)),
        }

    def _margin(self, output: Output, batch: Batch, meant: Tensor) -> Tensor:
        """log P of the one meant - log P of the other, at both: [A]."""
        sizes = per_group(torch.ones_like(batch.rewards), batch)
        if not bool((sizes == 2).all()):
            counts = sorted({int(size) for size in sizes})
            raise ConfigurationError(f"Hindsight needs pairs, got groups of {counts}: use the strategy Relabelled")
        mean = batch.per_rollout(output.logprobs) / num_tokens(batch, output.logprobs)  # [A]
        return per_group(torch.where(meant, mean, -mean), batch)[batch.groups]


def _mean_over_vocabulary(logits: Tensor, tokens: Tensor) -> Tensor:
    return logits.log_softmax(-1).mean(-1)


def hir(
    setting: Setting = Setting(group_size=4),
    right: str = "careful",  # the word that asks for a right answer
    wrong: str = "quick",  # the word that a wrong answer satisfies
    smoothing: float = 0.002,  # of the labels
    contrast: float = 1.0,  # weight of the preference for the instruction that was satisfied
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
