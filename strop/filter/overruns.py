"""Attribution of a reward's timeout, memory or stack overflow: to the completion, or to the scorer.

In a fresh worker the same reward scores known completions of the same task within half the deadline, then the suspect
again. If no control overruns and the suspect does so once more, the completion is at fault: it earns the lowest reward
given to wrong completions of this task and to siblings. Otherwise the scorer is at fault.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from strop.filter.paid_text import total
from strop.filter.reward_values import Fault, Score
from strop.types import Message, Rollout, Turn

_WRONG = ("", "I do not know.", "0")  # completions that are not right, or almost nowhere
FAST_SHARE = 0.25  # of the deadline, within which a completion is scored that shall be a control later
_CONTROL_SHARE = 0.5  # of the deadline: a scorer that is slow with everything is not cleared by a hair

Asked = Callable[[Rollout, float], Awaitable[Score]]
AskedTogether = Callable[[Sequence[Rollout], float], Awaitable[list[Score]]]


@dataclass(frozen=True)
class Overrun:
    """Completion that exhausts its scorer: the resource, and the reward it gets, that of a wrong answer."""

    text: str
    worth: float


async def cleared(
    ask: Asked, suspect: Rollout, known: Rollout | None, siblings: Sequence[float], seconds: float
) -> Score | Overrun:
    """What becomes of a suspect: its score after all, a fault of the scorer, or an overrun.

    `known`: a completion that this reward has scored quickly, of any task; `siblings`: its scores of others of this
    one.
    """
    usual = known.turns if known else said(suspect.task.answer or _WRONG[1])
    scores = list[Score]()
    for turns in (usual, *map(said, _WRONG)):
        scores.append(score := await ask(_control(suspect, turns), seconds * _CONTROL_SHARE))
        if isinstance(score, Fault) and (score.is_spent or score.is_death):
            return Fault(f"a control completion fails as well: {score.text}", is_whole=True)
    again = await ask(suspect, seconds)
    if not isinstance(again, Fault) or not again.is_spent:
        return again
    wrong = [total(score) for score in scores[1:] if not isinstance(score, Fault)]
    if not wrong:
        return Fault(f"{again.text}, and no wrong completion was scored", is_whole=True)
    return Overrun(f"{again.text}, twice, where controls were scored: it counts as wrong", min([*wrong, *siblings]))


async def cleared_siblings(
    ask: AskedTogether, siblings: Sequence[Rollout], faults: Sequence[Score], seconds: float
) -> list[Score | Overrun]:
    """The same for a reward that compares siblings: each is tried among controls, in place of all others.

    Those that exhaust it there are left out, a control in the place of each, and the others compared.
    """
    controls = [_control(rollout, said(_WRONG[1]), f"control/{n}") for n, rollout in enumerate(siblings)]

    async def is_spent(number: int) -> bool:
        tried = [*controls[:number], siblings[number], *controls[number + 1 :]]
        return _is_spent(await ask(tried, seconds))

    if any(isinstance(score, Fault) for score in await ask(controls, seconds * _CONTROL_SHARE)):
        return [*faults]
    guilty = await asyncio.gather(*map(is_spent, range(len(siblings))))
    left = [controls[n] if bad else siblings[n] for n, bad in enumerate(guilty)]
    scores = await ask(left, seconds)
    if any(isinstance(score, Fault) for score in scores):
        return [*scores]
    worth = min(total(score) for score in scores if not isinstance(score, Fault))
    text = "ran out of time, memory or stack, again among controls: it counts as wrong"
    return [Overrun(text, worth) if bad else score for bad, score in zip(guilty, scores, strict=True)]


def _control(suspect: Rollout, turns: tuple[Turn, ...], name: str = "control") -> Rollout:
    return replace(suspect, id=name, turns=turns, rewards={}, facts={})


def _is_spent(scores: Sequence[Score]) -> bool:
    return any(isinstance(score, Fault) and score.is_spent for score in scores)


class Book(Protocol):
    """Persistent map from keys to texts; the first text of a key stays."""

    def known(self, question: str) -> str | None: ...
    def keep(self, question: str, answer: str) -> str: ...
    def close(self) -> None: ...


@dataclass
class Overruns:
    """Record of overruns, so that the same completion gets the same result again, also after a resume.

    Overruns depend on wall-clock time, so without the record results would not be reproducible.
    """

    book: Book | None = None
    part: str = ""  # of the run: scorers that share a book do not share their rewards
    _found: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def known(self, name: str, rollout: Rollout) -> Overrun | None:
        key = self._key(name, rollout)
        told = self._found.get(key) or (self.book.known(key) if self.book else None)
        return Overrun(*json.loads(told)) if told else None

    def keep(self, name: str, rollout: Rollout, found: Overrun) -> None:
        key, told = self._key(name, rollout), json.dumps([found.text, found.worth])
        self._found[key] = self.book.keep(key, told) if self.book else told

    def close(self) -> None:
        if self.book is not None:
            self.book.close()

    def _key(self, name: str, rollout: Rollout) -> str:
        told = [self.part, name, rollout.task.id, *(turn.message.content for turn in rollout.turns)]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def is_overrun(rollout: Rollout) -> bool:
    """Whether its completion exhausted a scorer, and counts as wrong for it."""
    return rollout.is_scored and bool(rollout.error)


def said(text: str) -> tuple[Turn, ...]:
    """A completion of one turn that nobody sampled; a token for each character and one for the end."""
    tokens, nothing = np.zeros(len(text) + 1, np.int64), np.zeros(0, np.int64)
    return (Turn(nothing, tokens, np.zeros(len(tokens), np.float32), tokens - 1, Message("assistant", text)),)
