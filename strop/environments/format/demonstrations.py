r"""Parser of worked solutions: plan, chain of thought, steps and final answer.

Thought stands between tags of a model (`<think>`, `[THINK]` ...) or is prose; the answer stands in `<answer>`, after
`####`, in the last `\boxed{}`, after "the answer is", or behind the thought. Steps are what comes before the answer:
sentences, lines and lines of LaTeX (`strop/text/steps.py`). Text without a step is a bare answer and demonstrates
nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from strop.capabilities import Demonstrates
from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import ConfigurationError
from strop.roles import Episode
from strop.text.steps import Piece, steps_of
from strop.types import Task

TAGS = (
    (OPEN, CLOSE),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
)  # around the thought, by the models that write them
_ANSWER_TAGS = (("<answer>", "</answer>"), ("<|begin_of_solution|>", "<|end_of_solution|>"))
_PLAN_TAGS = re.compile(r"<(plan|planning)>(?P<plan>.{0,4000}?)</\1>", re.DOTALL | re.I)
_PLAN = re.compile(
    r"[#*\s]*plan[*\s]*(?::|\n)[*\s]*(?P<plan>.+?)(?:\n\s*\n|\n(?=[#*]*\s*(?:solution|step 1|answer)\b)|\Z)",
    re.S | re.I,
)
_SAYS = re.compile(
    r"(?:^|(?<=[\s*#>]))(?:(?:so|thus|hence|therefore|and|then)[,:]?\s+)?"
    r"(?:(?:the|our|my|your)\s+)?(?:final\s+)?(?:answer|result)(?:\s+to\s[^.\n]{1,80}?)?"
    r"(?:\s+(?:is|equals|=|would be|must be)\s*:?|\s*[*]{0,2}\s*:)[*\s]*(?P<said>[^\n]+)",
    re.I,
)
_CLAUSE = re.compile(r"[,;:]\s+|\s(?=(?:so|thus|hence|therefore)\s)")
_LEAST_WORDS, _LEAST_OF_CLAUSE = 3, 2  # of a text that is more than an answer; of a clause that is a step


class _Closing(NamedTuple):
    """Where the statement of the answer begins, and what it states."""

    start: int
    answer: str


@dataclass(frozen=True)
class Demonstration:
    """Worked text and the places of its steps."""

    text: str
    thought: str = ""  # without its tags; of prose, all before the answer
    plan: str = ""
    answer: str = ""
    pieces: tuple[Piece, ...] = ()  # places of the steps in the text

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(self.text[piece.start : piece.end] for piece in self.pieces)

    @property
    def is_worked(self) -> bool:
        """Whether there is anything beside a bare answer."""
        return bool(self.pieces)

    def hint(self, count: int) -> str:
        """The first steps, without tags, laid out as they were written."""
        said = ""
        for before, piece in zip((None, *self.pieces), self.pieces[:count], strict=False):
            between = "" if before is None else self.text[before.end : piece.start]
            said += ("\n" if "\n" in between else " " if between else "") + self.text[piece.start : piece.end]
        return said

    def beginning(self, count: int) -> str:
        """The text up to the end of a step, with tags and all, for a completion that goes on from there."""
        return self.text[: self.pieces[min(count, len(self.pieces)) - 1].end] if count and self.pieces else ""


@runtime_checkable
class Works(Protocol):
    """Environment with worked text of its tasks; None where a task has none."""

    def demonstration(self, task: Task) -> Demonstration | None: ...


@runtime_checkable
class WrapsEpisode(Protocol):
    """Episode around another one, which demonstrates what that one does."""

    @property
    def inner(self) -> Episode: ...


def demonstrates(episode: Episode) -> bool:
    """Whether an episode, and each one that it wraps, can demonstrate."""
    is_able = isinstance(episode, Demonstrates)
    return is_able and (not isinstance(episode, WrapsEpisode) or demonstrates(episode.inner))


def demonstrating(episode: Episode) -> Demonstrates:
    """The episode, if it can demonstrate right completions; refused otherwise."""
    if not isinstance(episode, Demonstrates):
        raise ConfigurationError(f"{type(episode).__name__} has no demonstrate(), so nothing can be shown in it")
    return episode


def demonstration(text: str, answer: str = "", plan: str = "") -> Demonstration:
    """A worked text taken apart; `answer` and `plan` are what its row says beside it."""
    text = text.strip()
    opened, closed, behind = _thought(text)
    closing = _closing(text, behind, answer) or _Closing(len(text), "")
    thought = text[opened:closed].strip() if closed else text[: closing.start].strip()
    planned = _plan(text)
    pieces = [*_steps(text, opened, closed), *_steps(text, max(behind, planned.end), closing.start)]
    pieces = [piece for piece in pieces if not _is_bare(text[piece.start : piece.end], closing.answer or answer)]
    if closed and not closing.answer and len(_steps(text, behind, closing.start)) == 1:
        pieces = [piece for piece in pieces if piece.start < closed]  # what stands alone behind a thought is the answer
    if len(pieces) == 1 and not _is_worth(text[pieces[0].start : pieces[0].end]):
        pieces = []
    said = closing.answer or (text[behind:].strip() if closed else "") or answer.strip()
    return Demonstration(text, thought, plan or _planned(text), said, tuple(pieces))


def _thought(text: str) -> tuple[int, int, int]:
    """Start and end of the thought and where the rest begins; zeros where no tag stands."""
    for opening, closing in TAGS:
        end = text.rfind(closing)
        if end >= 0:
            start = text.find(opening, 0, end)
            return (start + len(opening) if start >= 0 else 0), end, end + len(closing)
    return 0, 0, 0


def _closing(text: str, start: int, answer: str) -> _Closing | None:
    """The statement of the answer behind `start`."""
    for opening, closing in _ANSWER_TAGS:
        at = text.rfind(opening, start)
        if at >= 0:
            within = text[at + len(opening) :].partition(closing)[0]
            inner = _closing(within, 0, "")
            return _Closing(at, inner.answer if inner else within.strip())
    at = text.rfind("####", start)
    if at >= 0:
        return _Closing(at, text[at + 4 :].strip().partition("\n")[0])
    at = text.rfind("\\boxed{", start)
    if at >= 0:
        return _Closing(_before(text, start, at), _braced(text, at + len("\\boxed{")))
    said = list(_SAYS.finditer(text, start))
    if said:
        return _Closing(
            len(text[: said[-1].start()].rstrip("*#>_ \n")), said[-1]["said"].strip().rstrip(".").strip("*$ ")
        )
    return _last(text, start, answer)


def _last(text: str, start: int, answer: str) -> _Closing | None:
    """The last step, where it holds the row's answer and is not the only one."""
    pieces = steps_of(text, start)
    if not answer.strip() or len(pieces) < 2 or answer.strip() not in text[pieces[-1].start :]:
        return None
    return _Closing(pieces[-1].start, answer.strip())


def _before(text: str, start: int, at: int) -> int:
    """Where the step with the answer begins; of a text of one step, the clause that holds it."""
    pieces = steps_of(text, start)
    step = max((piece.start for piece in pieces if piece.start <= at), default=start)
    if step > start and any(piece.end <= step for piece in pieces):
        return step
    clauses = [cut.end() for cut in _CLAUSE.finditer(text, start, at) if text.count("$", start, cut.end()) % 2 == 0]
    return clauses[-1] if clauses and len(text[start : clauses[-1]].split()) >= _LEAST_OF_CLAUSE else start


def _braced(text: str, start: int) -> str:
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return text[start:place].strip()
    return text[start:].strip()


def _steps(text: str, start: int, end: int) -> list[Piece]:
    return steps_of(text, start, end) if end > start else []


def _is_worth(step: str) -> bool:
    """Whether a text of one step says more than an answer."""
    return len(step.split()) >= _LEAST_WORDS or "=" in step


def _is_bare(step: str, answer: str) -> bool:
    """Whether a step is the answer alone, or a heading over it."""
    said = step.strip("*#$ .:\n").lower()
    return not said or said == answer.strip("$ .").lower() or said in ("answer", "final answer", "solution", "steps")


def _plan(text: str) -> Piece:
    """Where the plan stands that a text begins with; nowhere: from 0 to 0."""
    found = _PLAN_TAGS.search(text) or _PLAN.match(text)
    return Piece(found.start(), found.end()) if found else Piece(0, 0)


def _planned(text: str) -> str:
    found = _PLAN_TAGS.search(text) or _PLAN.match(text)
    return found["plan"].strip() if found else ""
