"""The words of a verdict as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from strop.environments.judging.verdict import ASKED, BAD, GOOD
from strop.errors import ConfigurationError
from strop.generate.chat_template import Template
from strop.generate.turn_ops import cut
from strop.types import IntArray, Message, Trajectory


def word_ids(template: Template) -> IntArray:
    """The ids of good and bad: [2]."""
    ids = [template.encode(word) for word in (GOOD, BAD)]
    if any(len(each) != 1 for each in ids):
        raise ConfigurationError(
            f"a verdict is one token, and this model's tokenizer makes {len(ids[0])} of {GOOD!r} and {len(ids[1])} of "
            f"{BAD!r}: take another model"
        )
    if ids[0][0] == ids[1][0]:
        raise ConfigurationError(
            f"this model's tokenizer has one token, {int(ids[0][0])}, for both {GOOD!r} and {BAD!r}: take another model"
        )
    return np.concatenate(ids)


def before_verdict(template: Template, messages: Sequence[Message], reply: str) -> IntArray:
    """What is read before a verdict: the task, the reply whole and the question: [P].

    In pieces, as a conversation has it: many templates show of earlier replies only what stands behind their thoughts.
    """
    said = np.append(template.encode_reply(reply), template.end)
    return np.concatenate([template.opening(messages), said, template.between(template.end, [Message("user", ASKED)])])


def has_verdict(attempt: Trajectory) -> bool:
    """Whether there was room for it behind the reply."""
    return len(attempt.turns) > 0 and len(attempt.turns[-1].tokens) > 0


def as_verdict(attempt: Trajectory, ids: IntArray | None, keeps_reply: bool = False) -> Trajectory:
    """What was said as a verdict: one token, without that which ends a reply, and both words' ids beside it.

    The reply before it was read and not written, unless it is kept.
    """
    if ids is None:
        raise ConfigurationError("the words of verdicts are not known as tokens: call meet(policy) first")
    *before, whole = attempt.turns
    (turn,) = cut([whole], 1)
    told = replace(turn, message=whole.message, aux={"verdicts": ids[np.newaxis]})  # one row for the whole turn
    if keeps_reply:
        return replace(attempt, turns=(*before, told))
    read = np.concatenate([*(piece for turn in before for piece in (turn.prompt, turn.tokens)), told.prompt])
    return replace(attempt, turns=(replace(told, prompt=read, told=()),), turn_rewards=attempt.turn_rewards[-1:])
