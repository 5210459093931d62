"""XRPO's seeding (2510.06672): where a whole wave failed, the next one reads solved examples of similar tasks first.

Readings: examples are the policy's own right replies of this run, as turns of a chat before the task. Similar is what
shares most short pieces of text; the paper compares embeddings. Attempts are trained as they were sampled, with the
examples before them, in the group of those that failed: so it has contrast again. No pass rate counts them.
Papers: xrpo
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strop.concurrency import together
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.roles import Strategy
from strop.success import success
from strop.types import Group, Message, Metrics, Origin, Start, Task, Trajectory

_KNOWN = 256  # solved tasks that are remembered, the last ones
_PIECE = 3  # characters
_LONGEST = 400  # characters of an example; longer ones are not remembered


@dataclass
class SeededWhenLost(Strategy):
    """The first wave is plain; after waves without a success, `examples` solved tasks stand before the task."""

    examples: int = 2  # solved tasks that are shown

    # version, kind, what was asked and answered; only later versions see it: who was scored first does not matter
    _known: list[tuple[int, str, str, str]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.examples < 1:
            raise ConfigurationError(f"SeededWhenLost needs examples >= 1, got {self.examples}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if group.trajectories and not any(success(attempt) > 0 for attempt in group.scored):
            messages = self.shown(group.task, group.version)
            if len(messages) > len(group.task.messages):
                starts = [replace(start, messages=messages, origin=Origin.GUIDED) for start in starts]
        return await together(play(start) for start in starts)

    def shown(self, task: Task, version: int) -> tuple[Message, ...]:
        """The task's messages with the most similar solved ones before the last of them, the nearest one last."""
        kind, pieces = _kind(task), _pieces(prompt_of(task))
        known = [each for each in self._known if each[0] < version and each[1] == kind and each[2] != prompt_of(task)]
        nearest = sorted(known, key=lambda each: _overlap(pieces, _pieces(each[2])))[-self.examples :]
        told = [Message(*each) for _, _, asked, said in nearest for each in (("user", asked), ("assistant", said))]
        *before, last = task.messages
        return (*before, *told, last)

    def observe(self, group: Group) -> None:
        """Remember one right reply of the policy's own."""
        right = [t for t in group.own if success(t) >= 1 and len(t.turns) == 1 and len(t.reply) <= _LONGEST]
        if right:
            shortest = min(right, key=lambda attempt: len(attempt.reply))
            told = (group.version, _kind(group.task), prompt_of(group.task), shortest.reply)
            self._known = sorted([*self._known, told], key=lambda each: each[0])[-_KNOWN:]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing: `observe` does; says how many attempts read examples, and how many of them were right."""
        seeded = [t for group in groups for t in group.scored if t.origin is Origin.GUIDED]
        count = max(sum(len(group.scored) for group in groups), 1)
        right = sum(success(attempt) for attempt in seeded) / max(len(seeded), 1)
        return {"seeded_share": len(seeded) / count, "seeded_right": right}

    def state(self) -> dict[str, Any]:
        return {"known": [list(each) for each in self._known]}

    def restore(self, state: dict[str, Any]) -> None:
        self._known = [(int(at), str(kind), str(asked), str(said)) for at, kind, asked, said in state["known"]]


def _kind(task: Task) -> str:
    return f"{task.source}:{task.level}"


def _pieces(text: str) -> Counter[str]:
    return Counter(text[place : place + _PIECE] for place in range(max(len(text) - _PIECE + 1, 1)))


def _overlap(one: Counter[str], other: Counter[str]) -> float:
    """Shared pieces over all pieces, from 0 to 1."""
    return (one & other).total() / max((one | other).total(), 1)
