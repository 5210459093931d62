"""TRM: sentence-level GRPO; a thinking judge rewards each sentence's correctness, a preference the whole.

Title: From Faithfulness to Correctness: Generative Reward Models that Think Critically
Paper: arXiv 2509.25409 (2025)
Claim: Judging each sentence first by what was given, then by reasoning, finds more errors than one verdict per answer,
    and makes policies more correct and more useful at once.
Reading: Only reviews of the paper were read. A sentence earns 1 if it is judged correct; the preference against the
    task's own answer, in both orders, goes to all sentences with twice that weight; the advantage is standardized over
    all sentences of a group. A rule stands in for the judge (`judge=http://...#MODEL` asks a model) and the
    environment's check for the preference.
    `trains=judge` is the judge's own training: 1/2 each for right verdicts of faithfulness and of correctness, and a
    bonus of ours for an error caught, on tasks of a file whose answers are true verdicts (`env=FILE.jsonl`).
Left out: Search results as what has to be kept to: the bundled environments give the task alone.
Acts: reward/sentence_verdicts > 0 and fact/faithful > 0 and advantage_within > 0
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError, RewardError
from strop.filter.judges.batch_ask import all_of, judged, text_of
from strop.filter.judges.pairwise_judge import Graded
from strop.filter.judges.readers import plain
from strop.filter.paid_text import Paid, Span
from strop.filter.rewards.pairwise_vs_reference import Pairwise
from strop.filter.span_rewards import ENDS
from strop.recipes.environment_specs import is_answered
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import Advantage, LLMClient, Reward
from strop.run import Run
from strop.standins.judges.steps import judged_sentences
from strop.text.llm_prompt import judgement
from strop.text.steps import steps_of
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.turn_returns import ends_of, placed_payments
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Rollout

# Sentences of a completion, the judge's question about each, and its parsed verdicts (TRM).
#
# Each line of an answer has the verdict of faithfulness to the task, a reason, and the verdict of correctness:
# `2: faithful; it adds both numbers; incorrect`.

ASKED = (
    "Judge each numbered sentence of the completion: does it keep to what the task gives (faithful or unfaithful), "
    "why, and is it right (correct or incorrect)? One line each, as in 2: faithful; it adds both numbers; incorrect"
)
_MOST = 999  # sentences judged one by one; the rest counts as one more, which bounds the judge's time
# after a full stop, at a new line, at the tags of a chain of thought, and between two calculations
_TAG = re.compile(r"</?think>")
_LETTER, _BLANK = re.compile(r"[^\W\d_]"), re.compile(r"(?<==)\s+|(?<=\d)\s+(?=[\d(-])")
_LINE = re.compile(
    r"\W*(?:sentence\W{0,3})?(\d{1,4})\W*?[:.)\-|]\W*(faithful|unfaithful|not faithful)\b(.*)"
    r"\b(correct|incorrect|not correct)\b[^\w]*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SentenceVerdict:
    """Judgement of a sentence."""

    is_faithful: bool
    is_correct: bool


def sentences(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence in the text; tags of a thought are in none, and steps of digits end at a blank."""
    found, start = list[tuple[int, int]](), 0
    for cut in (*_TAG.finditer(text), None):
        end = cut.start() if cut else len(text)
        if end > start and not text[start:end].isspace():
            for piece in steps_of(text, start, end):
                found += islice(_parts(text, piece), _MOST + 1)
        if len(found) > _MOST:
            return [*found[:_MOST], (found[_MOST][0], len(text.rstrip()))]
        start = cut.end() if cut else start
    return found


def _parts(text: str, piece: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """A step of words as it is; one of signs alone cut at its blanks, as the bundled model writes them."""
    start, end = piece
    for cut in () if _LETTER.search(text, start, end) else _BLANK.finditer(text, start, end):
        if cut.start() > start:
            yield start, cut.start()
        start = cut.end()
    if end > start:
        yield start, end


def numbered(text: str) -> str:
    """The sentences of a completion, one per line with its number."""
    shown = [" ".join(text[start:end].split()) for start, end in sentences(text)]
    return "\n".join(f"{number}: {each}" for number, each in enumerate(shown, start=1))


def verdicts_in(text: str) -> dict[int, SentenceVerdict]:
    """Verdicts by the sentence's number; a sentence with two verdicts has none."""
    found = [_LINE.fullmatch(line.rstrip()) for line in plain(text).splitlines()]
    read = [(int(each.group(1)), each.group(2).lower(), each.group(4).lower()) for each in found if each]
    times = Counter(number for number, _, _ in read)
    return {
        number: SentenceVerdict(kept == "faithful", right == "correct")
        for number, kept, right in read
        if times[number] == 1
    }


@dataclass(frozen=True)
class EverySentence:
    """Reader of one verdict on each of `count` sentences."""

    count: int

    def read(self, text: str) -> list[SentenceVerdict] | None:
        found = verdicts_in(text)
        numbers = list(range(1, self.count + 1))
        return [found[number] for number in numbers] if sorted(found) == numbers else None

    def quote(self, text: str) -> str:
        return ""

    def fullmatch(self, text: str, /) -> bool:
        return all(_LINE.fullmatch(line.rstrip()) for line in plain(text).splitlines() if line.strip())


# TRM's reward for a policy (2509.25409): a judge reasons about each sentence and decides whether it is correct.
#
# Each sentence is rewarded at its own end, so that its advantage can be its own.


@dataclass(frozen=True)
class SentenceVerdicts(Reward):
    """1 / (number of sentences) at the end of each sentence of the last completion that is judged correct.

    A completion without a sentence earns 0; a judge's answer that leaves one out is an error.
    """

    judge: LLMClient
    weight: float = 1.0
    prompt: str = ASKED  # what the judge is asked, below task and numbered sentences

    is_inline: ClassVar[bool] = True  # awaits its judge

    async def __call__(self, group: Group) -> list[Paid]:
        return await all_of(self._score(rollout) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout) -> Paid:
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
        asked = judgement(self.prompt, task=text_of(rollout.task), completion=numbered(rollout.completion))
        return await judged(self.judge, asked, EverySentence(count))


# TRM's reward for the judge itself (2509.25409): its verdicts against the true ones, sentence by sentence.
#
# The size of the bonus for a caught error was not found: one half is ours.


@dataclass(frozen=True)
class VerdictsRight(Reward):
    """Mean over sentences: 1/2 for a right verdict of faithfulness, 1/2 of correctness, `bonus` for a caught error.

    The true verdicts are the task's answer, in the form that the policy is asked for. A sentence without exactly one
    verdict earns 0.
    """

    bonus: float = 0.5  # for an incorrect sentence that is called incorrect
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.bonus >= 0:
            raise ConfigurationError(f"VerdictsRight needs bonus >= 0, got {self.bonus}")

    def __call__(self, group: Group) -> list[float]:
        if not (truth := verdicts_in(group.task.answer)):
            raise RewardError(
                f"the answer of task {group.task.id} has no verdicts: need lines such as 1: faithful; why; correct"
            )
        return [self._score(truth, verdicts_in(rollout.completion)) for rollout in group.rollouts]

    def _score(self, truth: dict[int, SentenceVerdict], judged: dict[int, SentenceVerdict]) -> float:
        both = [(true, judged[number]) for number, true in truth.items() if number in judged]
        return sum(self.earned(true, verdict) for true, verdict in both) / len(truth)

    def earned(self, true: SentenceVerdict, verdict: SentenceVerdict) -> float:
        """Reward for the verdict on one sentence."""
        halves = (true.is_faithful == verdict.is_faithful) / 2 + (true.is_correct == verdict.is_correct) / 2
        return halves + self.bonus * (not true.is_correct and not verdict.is_correct)


# Sentence-level advantage (2509.25409): a sentence's reward stays with it, the completion's goes to all sentences.


@dataclass(frozen=True)
class SentenceStandard(Advantage):
    """A = (u - mean) / (std + epsilon) over all sentences of a group, u = its reward times their number + the rest.

    A sentence's reward is divided by the number of sentences, hence the factor; the rest is every reward that is not at
    the end of a sentence. A completion without tagged sentences is one sentence; tokens after the last tag belong to
    the last sentence.
    """

    epsilon: float = 1e-6  # keeps the divisor above 0

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            found = [_sentences(rollout) for rollout in group.scored]
            rewards = np.concatenate([values for values, _ in found]) if found else np.zeros(0)  # [S]
            spread = rewards.std(ddof=1) if len(rewards) > 1 and np.ptp(rewards) > 0 else 0.0
            for rollout, (values, lengths) in zip(group.scored, found, strict=True):
                advantage = (values - rewards.mean()) / (spread + self.epsilon) if spread else np.zeros_like(values)
                rollout.advantages = np.repeat(advantage, lengths).astype(np.float32)


def _sentences(rollout: Rollout) -> tuple[NDArray[np.float64], list[int]]:
    """u [S] and number of tokens of each sentence; together they cover all sampled tokens."""
    paid, ends = placed_payments(rollout), ends_of(rollout)
    own = np.array([paid[end] for end in ends] or [0.0])
    bounds = [0, *(end + 1 for end in ends[:-1]), len(paid)]
    rest = rollout.reward - own.sum()
    return own * len(own) + rest, np.diff(bounds).tolist()


def trm(
    setting: Setting = Setting(),
    trains: str = "policy",  # policy or judge: train a policy, or the judge of sentences
    judge: str = "rules",  # judges sentences (a named part)
    preference: float = 2.0,  # weight of the preference; the sentences have 1
    bonus: float = 0.5,  # trains=judge: reward for a caught error
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """Trains a policy with a judge of sentences, or that judge."""
    if trains not in ("policy", "judge"):
        raise ConfigurationError(f"trm trains policy or judge, got {trains!r}")
    advantage = SentenceStandard() if trains == "policy" else GroupStandard()
    run = setting.run("trm", advantage, (Clip(0.2, 0.2), Kl("k3", kl)))
    if trains == "judge":
        run.rewards = (VerdictsRight(bonus),)
        return run
    llm_client = named_part("judge", judge, setting, judged_sentences)
    preferred = (Pairwise(Graded(run.envs), preference),) if is_answered(run.envs) else ()
    run.rewards = (SentenceVerdicts(llm_client), *preferred)
    run.reward_seconds = reward_seconds(judge)
    return run
