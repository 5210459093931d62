"""How far vectors point the same way: mean cosines."""

from __future__ import annotations

from torch import Tensor


def within(states: Tensor) -> float:
    """The mean cosine of two different rows of [T, H]; 0 where there are fewer than two."""
    count = len(states)
    if count < 2:
        return 0.0
    units = _units(states)
    together = float(units.sum(0).square().sum())  # the sum over all pairs, each row with itself among them
    return (together - float(units.square().sum())) / (count * (count - 1))


def between(states: Tensor, others: Tensor) -> float:
    """The mean cosine of a row of [T, H] and a row of [S, H]; 0 where one of both has none."""
    if not len(states) or not len(others):
        return 0.0
    return float(_units(states).mean(0) @ _units(others).mean(0))


def _units(states: Tensor) -> Tensor:
    """In double precision: the score is a small difference of large sums."""
    rows = states.double()
    lengths: Tensor = rows.norm(dim=1, keepdim=True)
    return rows / lengths.clamp(min=1e-12)
