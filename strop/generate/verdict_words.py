"""The words of a verdict as tokens."""

from __future__ import annotations

import numpy as np

from strop.environments.verdicts import BAD, GOOD
from strop.errors import ConfigurationError
from strop.generate.template import Template
from strop.types import IntArray


def word_ids(template: Template) -> IntArray:
    """The ids of good and bad: [2]."""
    ids = [template.encode(word) for word in (GOOD, BAD)]
    if any(len(each) != 1 for each in ids):
        raise ConfigurationError(
            f"a verdict is one token, and this model's tokenizer makes {len(ids[0])} of {GOOD!r} and {len(ids[1])} of "
            f"{BAD!r}: take another model"
        )
    return np.concatenate(ids)
