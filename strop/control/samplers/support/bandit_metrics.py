"""What a run is told of a choice between arms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strop.control.seeded_choice import Doubles
from strop.roles import World
from strop.types import Metrics


def preference(chances: Doubles) -> float:
    """How far a choice is from an even one: the share of draws that would have to go elsewhere; 0 where it is even."""
    return float(np.abs(chances - 1 / len(chances)).sum() / 2)


def arm_figures(worlds: Sequence[World], chances: Doubles) -> Metrics:
    """The chance of each world, and how far they are from even."""
    each = {f"chance/{world.name}:{world.level}": float(p) for world, p in zip(worlds, chances, strict=True)}
    return {"preference": preference(chances), **each}
