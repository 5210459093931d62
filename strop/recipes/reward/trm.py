"""GRPO by sentence: a judge that thinks about each one says what is right, a preference what is useful.

Title: From Faithfulness to Correctness: Generative Reward Models that Think Critically
Paper: arXiv 2509.25409 (2025)
Claim: Judging each sentence first by what was given, then by reasoning, finds more errors than one verdict per answer,
    and makes policies more correct and more useful at once.
Reading: Read in reviews only. A sentence earns 1 where it is judged correct; the preference against the task's own
    answer, in both orders, goes to all sentences with twice that weight; advantage is standardized over all sentences
    of a group. A rule stands for the judge (`judge=http://...#MODEL` asks one) and the environment's check for the
    preference.
    `trains=judge` is the judge's own training: 1/2 for faithfulness and for correctness told right, and a bonus of ours
    for an error caught, on tasks of a file whose answers are true verdicts (`env=FILE.jsonl`).
Left out: Search results as what has to be kept to: the bundled environments give the task alone.
Acts: reward/sentence_verdicts > 0 and fact/faithful > 0 and credit_within > 0
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError, LLMClientError, RewardError
from strop.filter.judges.batch_ask import Lines, all_of, text_of, verdict
from strop.filter.judges.pairwise_judge import Graded
from strop.filter.paid_text import Paid, Span
from strop.filter.rewards.pairwise_vs_reference import Pairwise
from strop.filter.span_rewards import ENDS
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.roles import Advantage, LLMClient, Reward
from strop.run import Run
from strop.standins.judges.steps import judged_sentences
from strop.text.llm_prompt import judgement
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.turn_returns import ends_of, placed_payments
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Rollout

# Sentences of a completion, how a judge is asked about each, and how its verdicts are read (TRM).
#
# A line of an answer says first whether the sentence keeps to what was given, then why, then whether it is right: `2:
# faithful; it adds both numbers; incorrect`.

ASKED = (
    "Judge each numbered sentence of the completion: does it keep to what the task gives (faithful or unfaithful), "
    "why, and "
    "is it right (correct or incorrect)? One line each, as in 2: faithful; it adds both numbers; incorrect"
)
_MOST = (
    999  # that are judged one by one: what stands behind them is one more, or a long completion keeps everybody waiting
)
# after a full stop, at a new line, at the end of a working, and between two calculations
_BETWEEN = re.compile(r"(?<=[.!?])\s+|\n+|</?think>|(?<==)\s+|(?<=\d)\s+(?=[\d(-])")
_LINE = re.compile(
    r"[ \t*-]*(\d{1,4})[ \t]*[:.)][ \t]*(faithful|unfaithful)\b(.*)\b(correct|incorrect)[ \t.]*", re.IGNORECASE
)
VERDICTS = Lines(_LINE)  # an answer that is nothing else


@dataclass(frozen=True)
class SentenceVerdict:
    """What is said of a sentence."""

    is_faithful: bool
    is_correct: bool


def sentences(text: str) -> list[tuple[int, int]]:
    """Where each one begins and ends; all who speak of sentences cut here."""
    found, begin = list[tuple[int, int]](), 0
    for cut in _BETWEEN.finditer(text):
        if len(found) == _MOST:
            break
        found += [(begin, cut.start())] if text[begin : cut.start()].strip() else []
        begin = cut.end()
    return [*found, (begin, len(text))] if text[begin:].strip() else found


def numbered(text: str) -> str:
    """The sentences of a completion, one per line with its number."""
    shown = [" ".join(text[start:end].split()) for start, end in sentences(text)]
    return "\n".join(f"{number}: {each}" for number, each in enumerate(shown, start=1))


def verdicts_in(text: str) -> dict[int, SentenceVerdict]:
    """By a sentence's number; one that is judged twice is not judged."""
    found = [_LINE.fullmatch(line.rstrip()) for line in text.splitlines()]
    read = [(int(each.group(1)), each.group(2).lower(), each.group(4).lower()) for each in found if each]
    times = Counter(number for number, _, _ in read)
    return {
        number: SentenceVerdict(kept == "faithful", right == "correct")
        for number, kept, right in read
        if times[number] == 1
    }


# TRM's reward for a policy (2509.25409): a judge that thinks about each sentence says whether it is right.
#
# Each sentence is paid at its own end, so that advantage can stay with it.


@dataclass(frozen=True)
class SentenceVerdicts(Reward):
    """1 at the end of each sentence of the last completion that is judged correct, divided by how many there are.

    A completion without any sentence earns 0; an answer that leaves one out is none.
    """

    judge: LLMClient
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # awaits its judge

    async def __call__(self, group: Group) -> list[Paid]:
        return await all_of(self._mark(rollout) for rollout in group.rollouts)

    async def _mark(self, rollout: Rollout) -> Paid:
        places = sentences(rollout.completion)
        verdicts = await self._verdicts(rollout, len(places)) if places else []
        turn, count = len(rollout.turns) - 1, max(len(places), 1)
        rollout.facts["faithful"] = sum(each.is_faithful for each in verdicts) / count
        spans = [
            span
            for (start, end), verdict in zip(places, verdicts, strict=True)
            for span in (Span(turn, start, end, verdict.is_correct / count), Span(turn, end - 1, end, name=ENDS))
        ]
        return Paid(0.0, tuple(spans))

    async def _verdicts(self, rollout: Rollout, count: int) -> list[SentenceVerdict]:
        asked = judgement(ASKED, task=text_of(rollout.task), completion=numbered(rollout.completion))
        said = await verdict(self.judge, asked, VERDICTS)
        found = verdicts_in(said)
        if sorted(found) != list(range(1, count + 1)):
            raise LLMClientError(f"need one verdict on each of {count} sentences, got {said[:80]!r}")
        return [found[number] for number in range(1, count + 1)]


# TRM's reward for the judge itself (2509.25409): its verdicts against the true ones, sentence by sentence.
#
# How large the bonus for a caught error is was not found: one half is ours.


@dataclass(frozen=True)
class VerdictsRight(Reward):
    """The mean over sentences of 1/2 for faithfulness told right, 1/2 for correctness, and `bonus` for an error caught.

    The true verdicts are the task's answer, in the form that the policy is asked for. A sentence that is not judged, or
    twice, earns nothing.
    """

    bonus: float = 0.5  # for a sentence that is incorrect and called so
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.bonus >= 0:
            raise ConfigurationError(f"VerdictsRight needs bonus >= 0, got {self.bonus}")

    def __call__(self, group: Group) -> list[float]:
        if not (truth := verdicts_in(group.task.answer)):
            raise RewardError(f"the answer of task {group.task.id} holds no verdicts, as in 1: faithful; why; correct")
        return [self._mark(truth, verdicts_in(rollout.completion)) for rollout in group.rollouts]

    def _mark(self, truth: dict[int, SentenceVerdict], said: dict[int, SentenceVerdict]) -> float:
        both = [(true, said[number]) for number, true in truth.items() if number in said]
        return sum(self.earned(true, told) for true, told in both) / len(truth)

    def earned(self, true: SentenceVerdict, told: SentenceVerdict) -> float:
        """By one sentence."""
        halves = (true.is_faithful == told.is_faithful) / 2 + (true.is_correct == told.is_correct) / 2
        return halves + self.bonus * (not true.is_correct and not told.is_correct)


# Advantage by sentence (2509.25409): what a sentence was paid stays with it, what the completion was paid goes to them
# all.


@dataclass(frozen=True)
class SentenceStandard(Advantage):
    """A = (u - mean) / (std + epsilon) over all sentences of a group, u = its pay times their number + the rest.

    Pay per sentence is a share of the completion's, hence the number; the rest was not paid at the end of a sentence.
    A completion whose sentences are not marked is one sentence; what stands behind the last mark belongs to the last.
    """

    epsilon: float = 1e-6  # keeps the divisor above 0

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            found = [_sentences(rollout) for rollout in group.scored]
            worth = np.concatenate([values for values, _ in found]) if found else np.zeros(0)  # [S]
            spread = worth.std(ddof=1) if len(worth) > 1 and np.ptp(worth) > 0 else 0.0
            for rollout, (values, lengths) in zip(group.scored, found, strict=True):
                advantage = (values - worth.mean()) / (spread + self.epsilon) if spread else np.zeros_like(values)
                rollout.advantages = np.repeat(advantage, lengths).astype(np.float32)


def _sentences(rollout: Rollout) -> tuple[NDArray[np.float64], list[int]]:
    """What each sentence is worth and how many tokens it has: [S]; together they are all written tokens."""
    paid, ends = placed_payments(rollout), ends_of(rollout)
    own = np.array([paid[end] for end in ends] or [0.0])
    bounds = [0, *(end + 1 for end in ends[:-1]), len(paid)]
    rest = rollout.reward - own.sum()
    return own * len(own) + rest, np.diff(bounds).tolist()


def trm(
    setting: Setting = Setting(),
    trains: str = "policy",  # or judge: the model learns to give verdicts
    judge: str = "rules",  # who judges sentences: rules, itself, a model's folder, or http://HOST/v1#MODEL
    preference: float = 2.0,  # weight of the preference beside 1 for the sentences
    bonus: float = 0.5,  # for an error caught, where a judge is trained
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """A policy under a judge of sentences, or that judge."""
    if trains not in ("policy", "judge"):
        raise ConfigurationError(f"trm trains policy or judge, got {trains!r}")
    advantage = SentenceStandard() if trains == "policy" else GroupStandard()
    run = setting.run("trm", advantage, (Clip(0.2, 0.2), Kl("k3", kl)))
    if trains == "judge":
        run.rewards = (VerdictsRight(bonus),)
        return run
    llm_client = parse_judge(judge, judged_sentences)
    run.rewards = (SentenceVerdicts(llm_client), Pairwise(Graded(run.envs), preference))
    run.reward_seconds = judge_seconds(judge)
    return run
