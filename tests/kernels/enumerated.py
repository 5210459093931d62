"""The draw of one row by plain loops over its tokens: what every batch must equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import torch

from strop.kernels.sampling.sample_token import Draws


def kept(scores: Sequence[float], heat: float, top_k: int, top_p: float) -> dict[int, float]:
    """Probabilities by token, of those that are kept."""
    order = sorted(range(len(scores)), key=lambda token: (-scores[token], token))[: top_k or None]
    weights = [math.exp((scores[token] - scores[order[0]]) / heat) for token in order]
    before = [math.fsum(weights[:place]) for place in range(len(order))]
    target = top_p * math.fsum(weights) if top_p < 1 else math.inf
    chosen = {token: weight for token, weight, mass in zip(order, weights, before, strict=True) if mass < target}
    return {token: weight / math.fsum(chosen.values()) for token, weight in sorted(chosen.items())}


def drawn(scores: Sequence[float], heat: float, top_k: int, top_p: float, probability: float) -> tuple[int, float]:
    """The first kept token whose cumulated probability exceeds the probability, and its logprob."""
    if heat == 0:
        return max(range(len(scores)), key=lambda token: (scores[token], -token)), 0.0
    found = kept(scores, heat, top_k, top_p)
    token = next(token for token, total in zip(found, accumulate(found.values()), strict=True) if total > probability)
    return token, math.log(found[token])


def tied_scores(rows: int, vocabulary: int) -> torch.Tensor:
    """Quarters from 0 to 4: many are equal, and their exponentials are far from any share of a sum."""
    return torch.randint(0, 17, (rows, vocabulary), generator=torch.Generator().manual_seed(vocabulary)) / 4


def mixed(rows: int) -> Draws:
    """Every pair of limits, at several temperatures."""
    at = torch.arange(rows)
    return Draws(
        temperature=torch.tensor([1.0, 0.5, 2.0, 0.0])[at % 4],
        top_k=torch.tensor([0, 1, 3, 11, 500])[at // 4 % 5],
        top_p=torch.tensor([1.0, 0.5, 0.9, 0.01])[at // 20 % 4],
        keys=at * 0x1234567,
    )
