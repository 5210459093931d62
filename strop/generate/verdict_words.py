"""The words of a verdict as tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from strop.environments.verdicts import BAD, GOOD
from strop.errors import ConfigurationError
from strop.generate.pieces import cut
from strop.generate.template import Template
from strop.types import IntArray, Trajectory


def word_ids(template: Template) -> IntArray:
    """The ids of good and bad: [2]."""
    ids = [template.encode(word) for word in (GOOD, BAD)]
    if any(len(each) != 1 for each in ids):
        raise ConfigurationError(
            f"a verdict is one token, and this model's tokenizer makes {len(ids[0])} of {GOOD!r} and {len(ids[1])} of "
            f"{BAD!r}: take another model"
        )
    return np.concatenate(ids)


def as_verdict(attempt: Trajectory, ids: IntArray | None) -> Trajectory:
    """What was said as a verdict: one token, without that which ends a reply, and both words' ids beside it."""
    if ids is None:
        raise ConfigurationError("the words of verdicts are not known as tokens: call meet(policy) first")
    *before, whole = attempt.turns
    (turn,) = cut([whole], 1)
    told = replace(turn, message=whole.message, aux={"verdicts": ids[np.newaxis]})  # one row for the whole turn
    return replace(attempt, turns=(*before, told))
