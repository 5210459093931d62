"""An attempt told again: the same replies behind other messages, for losses that read them both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.generate.interfaces import Player
from strop.generate.turn_ops import by_nobody
from strop.types import Message, Origin, Trajectory


def twin(attempt: Trajectory, messages: Sequence[Message], play: Player) -> Trajectory:
    """A copy behind these messages, REPLAYED, with an id of its own and the attempt as its parent.

    Its tokens were sampled in the attempt and are counted there: here no weights wrote them. The order of calls decides
    its id, so make twins when all attempts are played.
    """
    told = play.retold(attempt, messages)
    turns = tuple(by_nobody(turn) for turn in told.turns)
    copy = replace(told, id=play.another().id, turns=turns, origin=Origin.REPLAYED, parent=attempt.id)
    return replace(copy, rewards={}, facts=dict(attempt.facts), notes={})
