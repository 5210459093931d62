"""Sampling by an exponential race (Gumbel-max): each token gets an exponential time with its probability as rate, and
the shortest time is sampled.

Every token of the vocabulary has its own random number at (key, position), where `draw` has one for all of them. The
distribution is the same, but two similar models sample the same token far more often: when the probabilities of two
tokens change, the times of all others stay, while inverse CDF sampling shifts everything after them. So more drafts are
accepted in speculative decoding. `triton.race` must equal this.
"""

from __future__ import annotations

import torch
from torch import Tensor

from strop.kernels.sampling.sample_token import Draws, drawn_by, streams

_WORD = 2**32 - 1


def race(scores: Tensor, how: Draws, positions: Tensor, is_truncated: bool) -> tuple[Tensor, Tensor]:
    """Tokens and their logprobs [T] from scores [T, V] at these positions [T]; a greedy token's logprob is 0."""
    late = times(how.keys, positions, scores.shape[1]).log()
    return drawn_by(lambda logprobs: (logprobs.double() - late).argmax(-1), scores, how, is_truncated)


def times(keys: Tensor, positions: Tensor, size: int) -> Tensor:
    """Exponential times of mean 1, one for every token [N, size] float64."""
    stream = streams(keys, positions).unsqueeze(1)
    bits = _stirred(torch.arange(size, device=keys.device) + (stream & _WORD))
    bits = _stirred(bits ^ (stream >> 32))
    return -torch.log1p((bits.double() + 0.5) * -(2.0**-32))


def _stirred(bits: Tensor) -> Tensor:
    """A bijection of 32 bits (Wellons' lowbias32); int64 is what torch multiplies."""
    bits = bits & _WORD
    bits = ((bits ^ (bits >> 16)) * 0x7FEB352D) & _WORD
    bits = ((bits ^ (bits >> 15)) * 0x846CA68B) & _WORD
    return bits ^ (bits >> 16)
