"""Groups by how likely one of several attempts was to be right, as foreseen before the first."""

from __future__ import annotations

from strop.types import Group

_ROUNDING = 1e-9  # 1 - (1 - 0.1) is less than 0.1


def pass_bin(group: Group, bins: int, tries: int) -> int:
    """Which of `bins` equal parts of 0 to 1 the chance falls into that one of `tries` attempts is right.

    The chance of one is what the run's belief foresaw; where nobody was asked, one half.
    """
    chance = 0.5 if group.foreseen is None else group.foreseen[0]
    return min(int(bins * (1 - (1 - chance) ** tries) + _ROUNDING), bins - 1)
