"""Reordering of batch rows by length, to reduce padding in attention."""

from __future__ import annotations

import numpy as np

from strop.generate.engines.cpu.decode_rows import Rows
from strop.generate.engines.cpu.kv_cache import keys_read
from strop.types import IntArray

_MAX_HOLES = 1.25  # rows spanned over rows active before they are moved together
_SWAP_COST = 128  # keys that lining up must save a step for each swap: what it costs, over the steps it lasts
_SHORTEST = 32  # lengths below are alike


def moved_together(rows: Rows) -> list[tuple[int, int]]:
    """Fill the holes that finished rows left, once there are so many that reading over them costs more."""
    active = rows.active
    if len(active) == 0 or active[-1] + 1 <= _MAX_HOLES * len(active) + 2:
        return []
    holes = np.flatnonzero(~rows.is_active[: len(active)])
    return list(zip(holes.tolist(), active[len(active) - len(holes) :].tolist(), strict=True))


def lined_up(rows: Rows) -> list[tuple[int, int]]:
    """Put long rows before short ones where that spares attention much reading of short ones' padding."""
    active = rows.active
    lengths = rows.length[active]
    if not (swaps := swaps_of(lengths)):
        return []
    saved = keys_read(active, lengths) - keys_read(active, np.sort(lengths)[::-1])
    return [(int(active[one]), int(active[other])) for one, other in swaps] if saved > _SWAP_COST * len(swaps) else []


def swaps_of(lengths: IntArray) -> list[tuple[int, int]]:
    """Pairs of places to exchange, one after the other, so that classes of length fall; each is twice the next."""
    now = np.ceil(np.log2(np.maximum(lengths, _SHORTEST))).astype(np.int64)
    wanted = np.sort(now)[::-1]
    swaps = []
    for place in range(len(now)):  # in this order: whoever is wanted here is never at an earlier place
        if now[place] < wanted[place]:
            other = int(np.flatnonzero((now == wanted[place]) & (now > wanted))[-1])
            swaps.append((place, other))
            now[[place, other]] = now[[other, place]]
    return swaps
