"""Replies to the tasks of a world with the better ones known: what reward models learn from.

Papers: axiomatic-preference
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from strop.environments.format.think_tags import final_answer
from strop.environments.judging.axiomatic_pairs import AXIOMS
from strop.environments.judging.derived import Derived
from strop.environments.judging.verdict import BAD, GOOD, about
from strop.environments.judging.wrong_replies import wrong_replies
from strop.environments.single_turn import Solves
from strop.errors import ConfigurationError, nearest
from strop.types import Message, Task

_TRIES = 100  # draws of an axiom before a task is said to have no pair


@dataclass(frozen=True)
class Preferences(Derived):
    """A task shows one of its replies and asks whether it is good; all of them stand in its answer, the best first.

    Two replies by one of `axioms`, each drawn with its share; more are the solution and ever worse mistakes. No two
    replies of a task are equal. `noise` is the share of train tasks whose first two replies change places.
    """

    axioms: tuple[tuple[str, float], ...] = (("useful", 1.0),)  # names, and how often each is drawn
    replies: int = 2  # of a task
    noise: float = 0.0  # share of wrong labels among train tasks

    def __post_init__(self) -> None:
        if not isinstance(self.world, Solves):
            raise ConfigurationError(f"{self.world.name} knows no right replies, so there is nothing to prefer")
        for name, share in self.axioms:
            if name not in AXIOMS:
                raise ConfigurationError(f"there is no axiom {name!r}: {nearest(name, AXIOMS)}")
            if not share > 0:
                raise ConfigurationError(f"axiom {name} needs a share above 0, got {share}")
        if self.replies < 2 or not self.axioms or not 0 <= self.noise < 1:
            told = f"got {self.replies}, {len(self.axioms)} and {self.noise}"
            raise ConfigurationError(f"Preferences needs replies >= 2, an axiom and 0 <= noise < 1, {told}")

    @property
    def name(self) -> str:
        return f"preferences-{self.world.name}"

    def task(self, index: int, heldout: bool = False) -> Task:
        inner = self.world.task(index, heldout)
        stream = random.Random(f"preferences/{index}/{inner.id}")
        axiom, replies = self._ranked(inner, stream)
        is_flipped = stream.random() < self.noise and not heldout
        if is_flipped:
            replies[:2] = replies[1::-1]
        shown = stream.randrange(2)
        secret = {
            "replies": replies,
            "shown": shown,
            "axiom": axiom,
            "flipped": is_flipped,
            "asked": len(inner.messages),
        }
        return Task(about(inner.messages, replies[shown]), json.dumps(secret), self.name, inner.level)

    def _ranked(self, inner: Task, stream: random.Random) -> tuple[str, list[str]]:
        assert isinstance(self.world, Solves)
        best = self.world.solution(inner)
        if self.replies > 2:
            return "useful", [best, *wrong_replies(self.world, inner, stream, self.replies - 1)]
        names, shares = zip(*self.axioms, strict=True)
        for _ in range(_TRIES):
            name = stream.choices(names, shares)[0]
            worse = AXIOMS[name](self.world, inner, stream)
            if worse != best:
                return name, [best, worse]
        raise ConfigurationError(f"axioms {', '.join(names)} make no pair of task {inner.id} of {inner.source}")

    def check(self, task: Task, reply: str) -> float:
        return float(final_answer(reply) == self.solution(task))

    def solution(self, task: Task) -> str:
        return BAD if json.loads(task.answer)["shown"] else GOOD


def replies_of(task: Task) -> list[str]:
    """The replies of such a task, the best first."""
    return [str(reply) for reply in json.loads(task.answer)["replies"]]


def shown_by(task: Task) -> str:
    """The reply that such a task asks about."""
    secret = json.loads(task.answer)
    return str(secret["replies"][secret["shown"]])


def asked_of(task: Task) -> tuple[Message, ...]:
    """What the replies are replies to."""
    return task.messages[: json.loads(task.answer)["asked"]]
