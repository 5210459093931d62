"""Sampling of one token per row with temperature, top-k and top-p, in plain torch; the kernel in `triton.draw` must
equal it.

Logprobs are those of the truncated, renormalized distribution. Tokens are ordered by the distance of their scores from
the highest one in float32, here as in the kernel, so that ties are the same in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

_GOLDEN, _FIRST, _SECOND = -7046029254386353131, -4658895280553007687, -7723592293110705685  # SplitMix64, as int64
_BELOW_ONE = 1 - 2.0**-52  # see engines/sampling.py: no token of probability 0 is ever drawn


class Draws(NamedTuple):
    """Sampling parameters of rows."""

    temperature: Tensor  # [T] float32, 0: the likeliest token
    top_k: Tensor  # [T] int64, 0: no limit
    top_p: Tensor  # [T] float32, 1: no limit
    keys: Tensor  # [T] int64, of their random streams

    def of(self, rows: Tensor) -> Draws:
        return Draws(*(each[rows] for each in self))


def draw(scores: Tensor, how: Draws, positions: Tensor, is_truncated: bool) -> tuple[Tensor, Tensor]:
    """Tokens and their logprobs [T] from scores [T, V] at these positions [T]; a greedy token's logprob is 0."""
    return drawn_by(lambda logprobs: _invert(logprobs, uniforms(how.keys, positions)), scores, how, is_truncated)


def drawn_by(
    choose: Callable[[Tensor], Tensor], scores: Tensor, how: Draws, is_truncated: bool
) -> tuple[Tensor, Tensor]:
    """What `draw` gives, of the token that is chosen from logprobs [T, V] where none is greedy."""
    is_greedy = how.temperature == 0
    scores = scores / how.temperature.where(~is_greedy, 1.0).unsqueeze(1)
    if is_truncated:
        scores = truncated(scores, how.top_k, how.top_p)
    logprobs = scores.log_softmax(-1)
    tokens = torch.where(is_greedy, scores.argmax(-1), choose(logprobs))
    chosen = logprobs.gather(1, tokens.unsqueeze(1)).squeeze(1)
    return tokens, torch.where(is_greedy & chosen.isfinite(), 0.0, chosen)


def truncated(scores: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """Keep the `top_k` likeliest, then the fewest of those that reach `top_p` of their mass; ties go to lower ids.

    Scores [N, V] are divided by the temperature already; -inf is what is left of the others.
    """
    below, order = (scores.amax(-1, keepdim=True) - scores).sort(dim=-1, stable=True)
    rank = torch.arange(scores.shape[-1], device=scores.device)
    too_low = (top_k.unsqueeze(1) > 0) & (rank >= top_k.unsqueeze(1))
    mass = below.double().neg_().exp_().masked_fill_(too_low, 0.0)
    until = mass.cumsum(-1)
    # what the likelier ones weigh: nothing for the first, which is therefore always kept
    is_beyond = until - mass >= top_p.double().unsqueeze(1) * until[:, -1:]
    dropped = too_low | is_beyond & (top_p < 1).unsqueeze(1)
    return scores.masked_fill(torch.empty_like(dropped).scatter_(1, order, dropped), float("-inf"))


def uniforms(keys: Tensor, positions: Tensor) -> Tensor:
    """One number in [0, 1) per (key, position): the stream of `random.py`, on the device [N] float64."""
    return _shifted(streams(keys, positions), 11).double() * 2.0**-53


def streams(keys: Tensor, positions: Tensor) -> Tensor:
    """64 random bits per (key, position) [N] int64."""
    return _mix(_mix(keys + _GOLDEN) + (positions.long() + 1) * _GOLDEN)


def _invert(logprobs: Tensor, probabilities: Tensor) -> Tensor:
    """The first token whose cumulated probability exceeds the probability [N]; in float64, or rare tokens are lost."""
    cumulated = logprobs.double().exp_().cumsum_(-1)
    target = (probabilities * _BELOW_ONE).unsqueeze(1) * cumulated[:, -1:]
    return torch.searchsorted(cumulated, target, right=True).squeeze(1).clamp_(max=logprobs.shape[-1] - 1)


def _mix(bits: Tensor) -> Tensor:
    bits = (bits ^ _shifted(bits, 30)) * _FIRST
    bits = (bits ^ _shifted(bits, 27)) * _SECOND
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, count: int) -> Tensor:
    """To the right and filled with zeros, as if unsigned."""
    return (bits >> count) & ((1 << (64 - count)) - 1)
