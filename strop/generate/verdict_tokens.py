"""The words of a verdict as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from strop.environments.judging.verdict_questions import ASKED, BAD, GOOD
from strop.errors import ConfigurationError
from strop.generate.templates.chat_template import Template
from strop.generate.turn_ops import cut
from strop.types import IntArray, Message, Rollout


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


def before_verdict(template: Template, messages: Sequence[Message], completion: str) -> IntArray:
    """What is read before a verdict: the task, the completion whole and the question: [P].

    In pieces, as a conversation has it: many templates show of earlier completions only what stands behind their
    thoughts.
    """
    said = np.append(template.encode_completion(completion), template.end)
    return np.concatenate([template.opening(messages), said, template.between(template.end, [Message("user", ASKED)])])


def has_verdict(rollout: Rollout) -> bool:
    """Whether there was room for it behind the completion."""
    return len(rollout.turns) > 0 and len(rollout.turns[-1].tokens) > 0


def as_verdict(rollout: Rollout, ids: IntArray | None, keeps_completion: bool = False) -> Rollout:
    """What was said as a verdict: one token, without that which ends a completion, and both words' ids beside it.

    The completion before it was read and not written, unless it is kept.
    """
    if ids is None:
        raise ConfigurationError("the words of verdicts are not known as tokens: call meet(policy) first")
    *before, whole = rollout.turns
    (turn,) = cut([whole], 1)
    told = replace(turn, message=whole.message, aux={"verdicts": ids[np.newaxis]})  # one row for the whole turn
    if keeps_completion:
        return replace(rollout, turns=(*before, told))
    read = np.concatenate([*(piece for turn in before for piece in (turn.prompt, turn.tokens)), told.prompt])
    return replace(rollout, turns=(replace(told, prompt=read, told=()),), turn_rewards=rollout.turn_rewards[-1:])
