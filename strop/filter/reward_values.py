"""Reward values per rollout: a finite number, or the reason why there is none."""

from __future__ import annotations

import asyncio
import inspect
import math
import numbers
import re
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from strop.capabilities import parts
from strop.errors import ConfigurationError, RewardError
from strop.filter.paid_text import Paid, Span, total
from strop.roles import Reward
from strop.storage.named_files import is_own_file
from strop.success import SURVIVAL
from strop.types import SUCCESS, Group, Rollout
from strop.workers.untrusted_answers import LARGEST, NoAnswer, entries, number, shown

_LONGEST_ERROR = 500
_MOST_FACTS, MOST_NAMES = 64, 512  # facts that rewards may leave on one rollout, and names of facts in a run
_NAME = re.compile(r"[\w.,:;+*%/() -]{1,64}")  # of a fact: it is printed, and becomes the name of a metric
_MOST_SPANS, _MOST_SPAN_NAMES = 10_000, 64  # of one rollout


@dataclass(frozen=True)
class Fault:
    """Reason for a missing reward; a breach is a violation of the reward's contract, which no rollout can cause."""

    text: str
    is_breach: bool = False
    is_whole: bool = False  # the call failed, so that the guilty rollout is not known
    is_spent: bool = False  # it ran out of time, memory or stack
    is_death: bool = False  # its process ended; said by the parent alone


Score: TypeAlias = float | Paid | Fault
RewardScores: TypeAlias = Sequence[float | Paid] | Awaitable[Sequence[float | Paid]]


async def scored(reward: Reward, group: Group, seconds: float | None = None) -> list[Score]:
    """One score per rollout, whatever the reward does short of hanging or dying; one that waits has a deadline."""
    try:
        returned = reward(group)
        if inspect.isawaitable(returned):
            returned = await _in_time(returned, seconds)
        return scores_of(returned, len(group.rollouts))
    except Exception as error:
        is_spent = isinstance(error, MemoryError | RecursionError)
        text = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR] + _place(error)
        fault = Fault(text, is_whole=True, is_spent=is_spent)
        return [fault] * len(group.rollouts)


def _place(error: Exception) -> str:
    """The line of a user's file at which it was raised, in brackets; empty where that is none of theirs."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.name != "<module>" and is_own_file(each.filename)]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


async def _in_time(work: Awaitable[Any], seconds: float | None) -> Any:
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await work
    except TimeoutError as error:
        raise TimeoutError(f"no answer within {seconds:g} s" if deadline.expired() else str(error)) from error


def shaped(asker: Reward, group: Group, shape: Callable[..., Sequence[float | Paid]], *inner: Reward) -> RewardScores:
    """`shape` of the plain scores of each inner reward, now, or once those that wait have answered.

    Successes are kept as facts before that. Where an inner reward has no score for a rollout there is none at all.
    """
    told = [reward(group) for reward in inner]
    if any(isinstance(each, Awaitable) for each in told):
        return _shaped_later(asker, group, shape, inner, told)
    return _shape(asker, group, shape, inner, [each for each in told if not isinstance(each, Awaitable)])


async def plain_scores(asker: Reward, inner: Reward, group: Group) -> list[float]:
    """Plain scores of an inner reward; NaN where it has none."""
    told = inner(group)
    scores = _plain_scores(asker, inner, group, await told if isinstance(told, Awaitable) else told)
    keep_successes(inner, group.rollouts, scores)
    return scores


async def _shaped_later(
    asker: Reward, group: Group, shape: Callable[..., Sequence[float | Paid]], inner: Sequence[Reward], told: Any
) -> Sequence[float | Paid]:
    scores = [await each if isinstance(each, Awaitable) else each for each in told]
    return _shape(asker, group, shape, inner, scores)


def _shape(
    asker: Reward,
    group: Group,
    shape: Callable[..., Sequence[float | Paid]],
    inner: Sequence[Reward],
    told: Sequence[Sequence[float | Paid]],
) -> Sequence[float | Paid]:
    scores = [_plain_scores(asker, reward, group, each) for reward, each in zip(inner, told, strict=True)]
    for reward, each in [pair for pair in zip(inner, scores, strict=True) if pair[0].grades][:1]:
        keep_successes(reward, group.rollouts, each)  # the first that says how right they are counts
    is_known = [not any(map(math.isnan, each)) for each in zip(*scores, strict=True)]
    made = shape(*scores)
    return [score if known else math.nan for score, known in zip(made, is_known, strict=True)]


def _plain_scores(asker: Reward, inner: Reward, group: Group, told: Sequence[float | Paid]) -> list[float]:
    scores = scores_of(told, len(group.rollouts))
    if faults := [score for score in scores if isinstance(score, Fault) and score.is_breach]:
        raise RewardError(f"{inner.name or type(inner).__name__} {faults[0].text}")
    if any(isinstance(score, Paid) for score in scores):
        raise ConfigurationError(
            f"{type(asker).__name__} needs one number per rollout, and {type(inner).__name__} pays spans"
        )
    return [score if isinstance(score, float) else math.nan for score in scores]


def keep_successes(reward: Reward, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> None:
    """Keep how right rollouts are, where this reward says so."""
    if reward.grades is None:
        return
    for rollout, score in zip(rollouts, scores, strict=True):
        if not isinstance(score, Fault) and not math.isnan(worth := total(score)):
            rollout.facts[SUCCESS] = reward.grades.success(worth)


def scores_of(returned: Any, count: int) -> list[Score]:
    """Judge what a reward returned for `count` rollouts."""
    if returned is None or isinstance(returned, str | bytes) or not hasattr(returned, "__len__"):
        problem = f"returned {_shown(returned)}, need a list of {count} numbers"
    elif len(returned) != count:
        problem = f"returned {len(returned)} values for {count} rollouts"
    else:
        return [_score(value) for value in returned]
    return [Fault(problem, is_breach=True, is_whole=True)] * count


def _score(value: Any) -> Score:
    if isinstance(value, Paid):
        numbers_of: list[Any] = [value.end, *(each for span in value.spans for each in (span.value, span.each))]
        is_finite = all(isinstance(each, int | float) and abs(each) <= LARGEST for each in numbers_of)
        return value if is_finite else Fault(f"returned {_shown(value)}, need finite numbers of at most {LARGEST:g}")
    is_number = isinstance(value, numbers.Real) or (hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0)
    if not is_number:
        return Fault(f"returned {_shown(value)}, need a number", is_breach=True)
    score = float(value)
    if abs(score) <= LARGEST:
        return score
    return Fault(f"returned {score}, need a finite number{f' of at most {LARGEST:g}' if math.isfinite(score) else ''}")


def _shown(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r}"[:80]


def to_json(scores: Sequence[Score]) -> list[Any]:
    """Scores as plain data."""
    return [_plain(score) for score in scores]


def _plain(score: Score) -> Any:
    if isinstance(score, Fault):
        return [score.text, score.is_breach, score.is_whole, score.is_spent]
    if isinstance(score, Paid):
        return {"end": score.end, "spans": [astuple(span) for span in score.spans]}
    return score


def from_json(plain: Any, count: int) -> list[Score]:
    """Scores from plain data that nobody vouches for."""
    if not isinstance(plain, list) or len(plain) != count:
        raise NoAnswer(f"answered {shown(plain)}, need {count} scores")
    return [_read(score) for score in plain]


def facts_from_json(plain: Any, count: int) -> list[dict[str, float]]:
    """Facts that rewards noted on rollouts, from plain data that nobody vouches for.

    How a rollout was sampled is no reward's to say.
    """
    if not isinstance(plain, list) or len(plain) != count or not all(isinstance(each, dict) for each in plain):
        raise NoAnswer(f"answered {shown(plain)}, need the facts of {count} rollouts")
    if any(len(each) > _MOST_FACTS for each in plain):
        raise NoAnswer(f"answered more than {_MOST_FACTS} facts of a rollout")
    return [{_fact_name(name): _fact(name, value) for name, value in each.items()} for each in plain]


def _fact_name(name: str) -> str:
    if name == SURVIVAL or not _NAME.fullmatch(name):
        raise NoAnswer(f"answered a fact {name[:64]!r}, which is no name for a fact of a reward")
    return name


def _fact(name: str, value: Any) -> float:
    fact = number(value)
    if name == SUCCESS and not 0 <= fact <= 1:
        raise NoAnswer(f"answered a success of {fact:g}, need one from 0 to 1")
    return fact


def _read(plain: Any) -> Score:
    if isinstance(plain, list):
        return _fault(plain)
    if isinstance(plain, dict):
        found = entries(plain, end=int | float, spans=list)
        if len(found["spans"]) > _MOST_SPANS:
            raise NoAnswer(f"answered {len(found['spans'])} spans of a rollout, need at most {_MOST_SPANS}")
        spans = tuple(_span(span) for span in found["spans"])
        if len({span.name for span in spans}) > _MOST_SPAN_NAMES:
            raise NoAnswer(f"answered spans of over {_MOST_SPAN_NAMES} names for a rollout")
        return Paid(number(found["end"]), spans)
    return number(plain)


def _span(plain: Any) -> Span:
    match plain:
        case [int(turn), int(start), int(end), value, each, str(name)]:
            return Span(turn, start, end, number(value), number(each), name[:_LONGEST_ERROR])
    raise NoAnswer(f"answered {shown(plain)}, need three whole numbers, two numbers and a name")


def _fault(plain: list[Any]) -> Fault:
    match plain:
        case [str(text), bool(is_breach), bool(is_whole), bool(is_spent)]:
            return Fault(text[:_LONGEST_ERROR], is_breach, is_whole, is_spent)
    raise NoAnswer(f"answered {shown(plain)}, need a text and three truth values")


# What parts of a reward count in its process, such as questions to judges.


@runtime_checkable
class Tallies(Protocol):
    """Part whose counts in one process are added up in another, as plain data."""

    def told(self) -> dict[str, Any]: ...
    def add(self, told: Any) -> None: ...


def tallying(reward: Reward) -> list[Tallies]:
    """Those within a reward, each once, in the same order in every process."""
    return list({id(part): part for _, part in parts(reward) if isinstance(part, Tallies)}.values())
