"""Rollout copies with the same sampled tokens after another prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.generate.turn_ops import by_nobody
from strop.roles import Player
from strop.types import Message, Origin, Rollout, Task

# Task with an instruction word before its question.


def worded(task: Task, word: str) -> tuple[Message, ...]:
    """Its messages with the word in the format known to the bundled model."""
    *before, last = task.messages
    return (*before, replace(last, content=f"{word}: {last.content}"))


# Twin of a rollout: the same completions after another prompt, for losses that use both.


def twin(rollout: Rollout, messages: Sequence[Message], play: Player) -> Rollout:
    """Copy of a rollout after these messages: REPLAYED, with its own id and the rollout as its parent.

    Its tokens were sampled in the rollout and are counted there: here they have no version. Ids depend on the order of
    calls, so make twins after all rollouts are done.
    """
    told = play.retold(rollout, messages)
    turns = tuple(by_nobody(turn) for turn in told.turns)
    copy = replace(told, id=play.another().id, turns=turns, origin=Origin.REPLAYED, parent=rollout.id)
    return replace(copy, rewards={}, facts=dict(rollout.facts), policy_statistics={})
