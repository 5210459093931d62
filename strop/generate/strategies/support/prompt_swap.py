"""Copies of rollouts with the same tokens behind another prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.generate.turn_ops import by_nobody
from strop.roles import Player
from strop.types import Message, Origin, Rollout, Task

# A task with a word before its question, which says how to go about it.


def worded(task: Task, word: str) -> tuple[Message, ...]:
    """Its messages, as the bundled model has seen such words."""
    *before, last = task.messages
    return (*before, replace(last, content=f"{word}: {last.content}"))


# A rollout told again: the same completions behind other messages, for losses that read them both ways.


def twin(rollout: Rollout, messages: Sequence[Message], play: Player) -> Rollout:
    """A copy behind these messages, REPLAYED, with an id of its own and the rollout as its parent.

    Its tokens were sampled in the rollout and are counted there: here no weights wrote them. The order of calls decides
    its id, so make twins when all rollouts are played.
    """
    told = play.retold(rollout, messages)
    turns = tuple(by_nobody(turn) for turn in told.turns)
    copy = replace(told, id=play.another().id, turns=turns, origin=Origin.REPLAYED, parent=rollout.id)
    return replace(copy, rewards={}, facts=dict(rollout.facts), policy_statistics={})
