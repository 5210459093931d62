"""Batched questions of rewards to a judge, each with the same answer whenever it is asked.

An answer is parsed only after its question's code, or if it is a bare verdict and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

from strop.capabilities import inside
from strop.errors import UnreadVerdictError
from strop.roles import CountsUnread, LLMClient
from strop.text.llm_prompt import Bare, code_in, compact, is_shown, judgement, own_words, without_reasoning
from strop.text.sanitize import set_in
from strop.types import Message, Outcome, Rollout, Sampling, Task

Result = TypeVar("Result")
Read = TypeVar("Read", covariant=True)
EXACT = Sampling(temperature=0.0, max_tokens=512)
_SIGN = 24  # tokens of a code before the verdict


@runtime_checkable
class ReadsCompact(Protocol):
    """Judge that may have been trained on prompts without code fences, and is asked without them."""

    @property
    def reads_compact(self) -> bool: ...


def form_for(judge: LLMClient) -> Callable[..., str]:
    """How a question is put to a judge: fenced, but where an environment trained it with the same one."""
    asked = [each for each in inside(judge, LLMClient) if isinstance(each, ReadsCompact)]
    return compact if any(each.reads_compact for each in asked) else judgement


class AnswerReader(Bare, Protocol[Read]):
    """Reader of a judge's answer, see `readers.py`."""

    def read(self, text: str) -> Read | None: ...
    def quote(self, text: str) -> str: ...


async def judged(
    judge: LLMClient, asked: str, reader: AnswerReader[Read], sampling: Sampling = EXACT, key: int | None = None
) -> Read:
    """What a judge decided. Without the question's code, prose counts where its verdict is nothing that was shown."""
    longer = replace(sampling, max_tokens=sampling.max_tokens + _SIGN)
    said = await judge.ask([Message("user", asked)], longer, key_of(asked) if key is None else key)
    own = own_words(asked, said, reader)
    if own is None and code_in(asked) not in said and (word := reader.quote(said)) and not is_shown(asked, word):
        own = said
    if own is None or (value := reader.read(own)) is None:
        raise unread(judge, said, "no verdict of the judge's own, or several different ones, in")
    return value


async def judged_or_none(
    judge: LLMClient, asked: str, reader: AnswerReader[Read], sampling: Sampling = EXACT, key: int | None = None
) -> Read | None:
    """The same where one of several verdicts may be lost."""
    try:
        return await judged(judge, asked, reader, sampling, key)
    except UnreadVerdictError:
        return None


async def verdict(judge: LLMClient, asked: str, bare: Bare, sampling: Sampling = EXACT, key: int | None = None) -> str:
    """A judge's own words; what may be a quotation is none."""
    longer = replace(sampling, max_tokens=sampling.max_tokens + _SIGN)
    said = await judge.ask([Message("user", asked)], longer, key_of(asked) if key is None else key)
    if (own := own_words(asked, said, bare)) is None:
        raise unread(judge, said, "no verdict of the judge's own, or several different ones, in")
    return own


def heard(llm_client: LLMClient, said: str) -> str:
    """What is left of an answer without its thoughts; nothing is no answer."""
    if not (spoken := without_reasoning(said)):
        raise unread(llm_client, said, "an answer without a word:")
    return spoken


def unread(judge: LLMClient | None, said: str, problem: str) -> UnreadVerdictError:
    """The error of an answer that cannot be read; whoever gave it counts it."""
    for each in inside(judge, CountsUnread):
        each.unread(said)
    return UnreadVerdictError(f"{problem} {said[:80]!r}")


@dataclass(frozen=True)
class Lines:
    """Answers in which every line can be parsed."""

    pattern: re.Pattern[str]

    def fullmatch(self, text: str, /) -> bool:
        return all(self.pattern.fullmatch(line.rstrip()) for line in text.splitlines() if line.strip())


def text_of(task: Task) -> str:
    """What is asked."""
    return "\n".join(message.content for message in task.messages)


def transcript(rollout: Rollout) -> str:
    """What a judge reads of a rollout: its completion as it is laid out; of several turns, each with what the
    environment answered. No line within a turn begins at the margin, so that none can pass for an answer.
    """
    if len(rollout.turns) < 2:
        return rollout.completion
    lines = list[str]()
    for number, turn in enumerate(rollout.turns, start=1):
        lines += [f"environment: {set_in(message.content)}" for message in turn.told if number > 1]
        lines.append(f"turn {number}: {set_in(turn.message.content)}")
    return "\n".join([*lines, *(["cut off before its end"] if rollout.outcome is Outcome.TRUNCATED else [])])


def key_of(text: str) -> int:
    """The same question is answered alike, whenever it is asked."""
    return int.from_bytes(hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:8], "big") >> 1


async def all_of(works: Iterable[Awaitable[Result]]) -> list[Result]:
    """All at once; the first error is raised when all are done."""
    found = await asyncio.gather(*works, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if not isinstance(each, BaseException)]
