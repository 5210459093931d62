"""DeepSearch's credit (2509.25454): each token has the worth of its node, less the mean worth of the group's ends.

Papers: deepsearch
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.tree_lineage import counts
from strop.types import Group, Trajectory

_VALUE = "value"  # under which a search notes the worth of each token's node


@dataclass(frozen=True)
class SearchValues(Advantage):
    """Worth - mean worth of the last tokens, not divided by anything; an attempt alone is compared with 0.

    A token that several attempts share counts once for each of them: every attempt is trained whole.
    """

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            worth = {attempt.id: _worth(attempt) for attempt in group.scored}
            ends = [values[-1] for values in worth.values() if len(values)]
            middle = float(np.mean(ends)) if len(ends) > 1 else 0.0
            times = counts(group)
            for attempt in group.scored:
                credit = (worth[attempt.id] - middle) * times[attempt.id]
                attempt.advantages = credit.astype(np.float32)


def _worth(attempt: Trajectory) -> NDArray[np.float64]:
    """[N]."""
    if any(_VALUE not in turn.aux for turn in attempt.turns if len(turn.tokens)):
        raise ConfigurationError(f"attempt {attempt.id} comes from no search: SearchValues needs the strategy Frontier")
    found = [turn.aux[_VALUE][len(turn.prompt) :] for turn in attempt.turns if len(turn.tokens)]
    return np.concatenate([np.zeros(0), *found])
