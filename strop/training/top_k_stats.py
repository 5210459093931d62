"""A policy statistic of the likeliest tokens at each place, and what can be read from it."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.training.machine.logprobs import PolicyOutput
from strop.training.requirements import PolicyStatistic

_FIRST = 5  # tokens whose mean probability is confidence


@cache
def top(count: int) -> PolicyStatistic:
    """Probabilities of the `count` likeliest tokens, then their ids, the likeliest first: [N, 2 * count]."""
    return PolicyStatistic(f"top {count}", partial(_look, count))


def entropies(tops: NDArray[Any]) -> NDArray[np.float64]:
    """Of the likeliest tokens among themselves: [N, 2 * K] -> [N]."""
    probabilities = tops[:, : tops.shape[1] // 2].astype(np.float64)
    probabilities = probabilities / probabilities.sum(1, keepdims=True)
    return np.asarray(-(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(1))


def confidences(tops: NDArray[Any]) -> NDArray[np.float64]:
    """The mean probability of the five likeliest, 0.2 at most: [N, 2 * K] -> [N]."""
    return np.asarray(tops[:, :_FIRST].astype(np.float64).mean(1))


def confidence(scores: Tensor, tokens: Tensor) -> Tensor:
    """The same from logits: [C, V] -> [C]."""
    return scores.softmax(-1).topk(_FIRST).values.mean(-1)


def _look(count: int, output: PolicyOutput) -> Tensor:
    return output.over_logits(partial(likeliest, count))


def likeliest(count: int, scores: Tensor, tokens: Tensor) -> Tensor:
    """[C, V] -> [C, 2 * count]."""
    values, places = scores.softmax(-1).topk(count)
    return torch.cat([values, places.to(values.dtype)], 1)
