"""Steps of completions for process rewards: calculations that a rule checks, and steps of any worked text.

Like learned process reward models the rule can be exploited: a right calculation that leads nowhere counts like any
other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from strop.environments.bundled.countdown import Exact, Expression
from strop.environments.format.demonstrations import demonstration
from strop.environments.format.think_tags import CLOSE, OPEN
from strop.filter.paid_text import Span
from strop.types import Rollout

MOST_STEPS = (
    1000  # that are read: the rest is one that does not hold, or a long completion would keep everybody waiting
)
_STEP = re.compile(r"(?<!\S)[^\s=]*=\S*")  # from where a word begins, or a long one without = is read again and again


class StepJudge(Protocol):
    """Process reward model: a value for each step of a rollout."""

    def steps(self, rollout: Rollout) -> list[Span]:
        """A place for each step that is not empty, in order; its value is from 0 to 1."""
        ...


@dataclass(frozen=True)
class Calculations(StepJudge):
    """Steps are the parts that contain `=`, and the text after the last of them: the answer.

    A step's value is 1 while all calculations so far hold (`12+3=15`), and 0 from the first wrong one on. A completion
    is split at blanks and at the end of its chain of thought.
    """

    def steps(self, rollout: Rollout) -> list[Span]:
        found: list[Span] = []
        is_right = True
        for number, turn in enumerate(rollout.turns):
            text = turn.message.content.replace("<think>", " " * 7).replace("</think>", " " * 8)  # places stay
            for step in _STEP.finditer(text):
                is_last = len(found) == MOST_STEPS
                is_right = is_right and not is_last and holds(step.group())
                found.append(Span(number, step.start(), len(text) if is_last else step.end(), float(is_right)))
                if is_last:
                    return found
        return [*found, *_answer(rollout, found)]


@dataclass(frozen=True)
class WorkedSteps(StepJudge):
    """Places of the steps of any completion, of value 1: sentences, lines and lines of LaTeX, and then the answer; of a
    chain of calculations, the calculations.
    """

    def steps(self, rollout: Rollout) -> list[Span]:
        if is_chain(rollout.completion):
            return [replace(span, value=1.0) for span in Calculations().steps(rollout)]
        found: list[Span] = []
        for number, turn in enumerate(rollout.turns):
            text = turn.message.content
            at = len(text) - len(text.lstrip())
            worked = demonstration(text)
            places = [(at + piece.start, at + piece.end) for piece in worked.pieces[:MOST_STEPS]]
            last = places[-1][1] if places else at
            rest = len(text.rstrip())
            found += [Span(number, *place, 1.0) for place in [*places, *([(last, rest)] if rest > last else [])]]
        return found


def is_chain(text: str) -> bool:
    """Whether a text consists of calculations without blanks, and perhaps an answer."""
    words = text.replace(OPEN, " ").replace(CLOSE, " ").split()
    return all("=" in word for word in words[:-1])


def _answer(rollout: Rollout, found: list[Span]) -> list[Span]:
    """What the last turn says behind its last calculation."""
    last, text = len(rollout.turns) - 1, rollout.completion.rstrip()
    after = max((step.end for step in found if step.turn == last), default=0)
    is_right = found[-1].value if found else 1.0
    return [Span(last, after, len(text), is_right)] if len(text) > after else []


def holds(step: str) -> bool:
    """Whether both sides of a step are the same number; what cannot be read is not."""
    left, _, right = step.partition("=")
    try:
        return _value(left) == _value(right)
    except (ValueError, ZeroDivisionError):
        return False


@lru_cache(1 << 13)  # siblings repeat steps, and a judge asks several times
def _value(text: str) -> Exact:
    return Expression(f"0{text}" if text.startswith("-") else text).value
