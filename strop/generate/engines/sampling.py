"""Token sampling with temperature, top-k and top-p, and the logprob under the truncated distribution.

Kept probabilities are renormalized before the logprob is taken, so that a trainer's importance ratio starts at 1.
Temperature 0 is greedy, with logprob 0.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.kernels.sampling.sample_token import truncated
from strop.types import FloatArray, IntArray

# The largest uniform times this, times any total, rounds to less than the total. Then some token's cumulated
# probability exceeds the target, the first to do so has a positive one, and none of probability 0 is ever returned.
_BELOW_ONE = 1 - 2.0**-52


def draw(
    logits: Tensor,  # [N, V]
    temperature: FloatArray,  # [N]
    top_k: IntArray,  # [N], 0: no limit
    top_p: FloatArray,  # [N]
    uniforms: NDArray[np.float64],  # [N]
) -> tuple[IntArray, FloatArray]:
    """Tokens and their logprobs, both [N]."""
    scores = distribution(logits, temperature, top_k, top_p)
    tokens = _invert(scores, torch.from_numpy(uniforms * _BELOW_ONE).to(scores.device))
    chosen = scores.gather(1, tokens.unsqueeze(1)).squeeze(1)
    return tokens.cpu().numpy(), chosen.cpu().numpy()


def distribution(logits: Tensor, temperature: FloatArray, top_k: IntArray, top_p: FloatArray) -> Tensor:
    """Log-probabilities [N, V] that are sampled from, in float32; -inf where truncated."""
    is_greedy = temperature == 0
    scores = logits.float()
    if not (temperature == 1).all():
        divisor = np.where(is_greedy, np.float32(1), temperature)
        scores = scores / torch.from_numpy(divisor).to(scores.device).unsqueeze(1)
    limits = np.where(is_greedy, 1, top_k)
    is_truncated = (limits > 0) | (top_p < 1)
    if is_truncated.any():
        rows = torch.from_numpy(np.flatnonzero(is_truncated)).to(scores.device)
        limit = torch.from_numpy(limits[is_truncated]).to(scores.device)
        mass = torch.from_numpy(top_p[is_truncated]).to(scores.device)
        scores = scores.index_copy(0, rows, truncated(scores[rows], limit, mass))
    return scores.log_softmax(-1)


def _invert(scores: Tensor, uniforms: Tensor) -> Tensor:
    """Inverse of the cumulative distribution: the first token whose cumulated probability exceeds the uniform."""
    cumulated = scores.double().exp_().cumsum_(-1)  # float64: with 150,000 tokens float32 loses the rare ones
    target = uniforms.unsqueeze(1) * cumulated[:, -1:]
    tokens = torch.searchsorted(cumulated, target, right=True).squeeze(1)
    return tokens.clamp_(max=scores.shape[-1] - 1)  # NaN exceeds nothing; the caller sees it in the logprob
