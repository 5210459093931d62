"""Verdict tokens of a generative judge: the words good and bad."""

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
    """Token ids of good and bad: [2]."""
    ids = [template.encode(word) for word in (GOOD, BAD)]
    if any(len(each) != 1 for each in ids):
        raise ConfigurationError(
            f"a verdict must be one token, and this tokenizer makes {len(ids[0])} of {GOOD!r} and {len(ids[1])} of "
            f"{BAD!r}: choose another model"
        )
    if ids[0][0] == ids[1][0]:
        raise ConfigurationError(
            f"this tokenizer has one token, {int(ids[0][0])}, for both {GOOD!r} and {BAD!r}: choose another model"
        )
    return np.concatenate(ids)


def before_verdict(template: Template, messages: Sequence[Message], completion: str) -> IntArray:
    """Prompt of a verdict: the task, the whole completion and the question: [P].

    It is assembled in pieces, as in a conversation: many templates drop the thoughts of earlier completions.
    """
    said = np.append(template.encode_completion(completion), template.end)
    return np.concatenate([template.opening(messages), said, template.between(template.end, [Message("user", ASKED)])])


def has_verdict(rollout: Rollout) -> bool:
    """Whether the context had room for a verdict after the completion."""
    return len(rollout.turns) > 0 and len(rollout.turns[-1].tokens) > 0


def as_verdict(rollout: Rollout, ids: IntArray | None, keeps_completion: bool = False) -> Rollout:
    """The rollout with its last turn reduced to the verdict: one token, no end token, ids of both words in `aux`.

    The completion before it becomes a prefix unless it is kept.
    """
    if ids is None:
        raise ConfigurationError("the verdict tokens are not known: call meet(policy) first")
    *before, whole = rollout.turns
    (turn,) = cut([whole], 1)
    told = replace(turn, message=whole.message, aux={"verdicts": ids[np.newaxis]})  # one row for the whole turn
    if keeps_completion:
        return replace(rollout, turns=(*before, told))
    read = np.concatenate([*(piece for turn in before for piece in (turn.prompt, turn.tokens)), told.prompt])
    return replace(rollout, turns=(replace(told, prompt=read, told=()),), turn_rewards=rollout.turn_rewards[-1:])
