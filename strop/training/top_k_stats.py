"""Policy statistic of the K most likely tokens at each position, with entropy and confidence."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.training.machine.logprobs import PolicyOutput
from strop.training.requirements import PolicyStatistic

_FIRST = 5  # confidence is the mean probability of this many tokens


@cache
def top(count: int) -> PolicyStatistic:
    """Probabilities of the `count` most likely tokens, then their ids, in descending order: [N, 2 * count]."""
    return PolicyStatistic(f"top {count}", partial(_look, count))


def entropies(tops: NDArray[Any]) -> NDArray[np.float64]:
    """Entropy of the top tokens, renormalized: [N, 2 * K] -> [N]."""
    probabilities = tops[:, : tops.shape[1] // 2].astype(np.float64)
    probabilities = probabilities / probabilities.sum(1, keepdims=True)
    return np.asarray(-(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(1))


def confidences(tops: NDArray[Any]) -> NDArray[np.float64]:
    """Mean probability of the five most likely tokens, 0.2 at most: [N, 2 * K] -> [N]."""
    return np.asarray(tops[:, :_FIRST].astype(np.float64).mean(1))


def confidence(scores: Tensor, tokens: Tensor) -> Tensor:
    """Confidence from logits: [C, V] -> [C]."""
    return scores.softmax(-1).topk(_FIRST).values.mean(-1)


def _look(count: int, output: PolicyOutput) -> Tensor:
    return output.over_logits(partial(likeliest, count))


def likeliest(count: int, scores: Tensor, tokens: Tensor) -> Tensor:
    """Top probabilities and ids from logits: [C, V] -> [C, 2 * count]."""
    values, places = scores.softmax(-1).topk(count)
    return torch.cat([values, places.to(values.dtype)], 1)
