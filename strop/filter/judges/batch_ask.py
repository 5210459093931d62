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
from strop.text.llm_prompt import Bare, compact, judgement, own_words, without_reasoning
from strop.types import Message, Sampling, Task

Result = TypeVar("Result")
EXACT = Sampling(temperature=0.0, max_tokens=512)
NUMBER = re.compile(r"(?:score|rating)?\W{0,9}-?\d{1,6}(?:\.\d{1,6})?(?:\s?%|\s?/\s?100?)?\W{0,9}", re.IGNORECASE)
YES_OR_NO = re.compile(r"\W{0,9}(?:yes|no)\W{0,9}", re.IGNORECASE)
ANYTHING = re.compile(r".*", re.DOTALL)  # for readers that take no answer but a whole one
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


async def verdict_or_none(judge: LLMClient, asked: str, bare: Bare, sampling: Sampling, key: int) -> str:
    """The same where one of several verdicts may be lost; empty: it cannot be read."""
    try:
        return await verdict(judge, asked, bare, sampling, key)
    except UnreadVerdictError:
        return ""


@dataclass(frozen=True)
class Lines:
    """Answers in which every line can be parsed."""

    pattern: re.Pattern[str]

    def fullmatch(self, text: str, /) -> bool:
        return all(self.pattern.fullmatch(line.rstrip()) for line in text.splitlines() if line.strip())


def text_of(task: Task) -> str:
    """What is asked."""
    return "\n".join(message.content for message in task.messages)


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
