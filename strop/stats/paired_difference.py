"""How two models differ on the same tasks: task by task, which is surer than two accuracies apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

from strop.stats.intervals import Difference

_SIGMAS = 1.959964  # 95%


def over_tasks(left: Sequence[float], right: Sequence[float]) -> Difference:
    """Mean of left - right, each the share of right rollouts of one task, with its 95% interval.

    The interval is that of Bonett and Price (2012): as if two more tasks had been tried, one won and one lost, so that
    it has a width even where nothing differs. The mean is that of the real tasks.
    """
    differences = [a - b for a, b in zip(left, right, strict=True)]
    size = len(differences) + 2
    centre = sum(differences) / size
    variance = (sum(each**2 for each in differences) + 2) / size - centre**2
    half = _SIGMAS * math.sqrt(variance / size)
    mean = sum(differences) / len(differences) if differences else math.nan
    return Difference(mean, max(centre - half, -1.0), min(centre + half, 1.0))
