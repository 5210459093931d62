"""Counter-based random numbers: each is a hash of a request's key and a token's position, without generator state.

So the tokens sampled for a request do not depend on the rest of the batch, on order, or on interruptions. The hash is
SplitMix64 (Steele, Lea and Flood, 2014).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def uniforms(keys: NDArray[np.uint64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """One number in [0, 1) per (key, position), with 53 random bits."""
    streams = _mix(keys + _GOLDEN)
    bits = _mix(streams + (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def as_key(key: int) -> np.uint64:
    """Any Python integer, cut to 64 bits."""
    return np.uint64(key & 0xFFFFFFFFFFFFFFFF)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64 bits in which every input bit reaches every output bit; array arithmetic wraps around."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))
