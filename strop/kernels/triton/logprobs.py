"""`strop.kernels.logprobs` in Triton: one pass over a chunk's logits each way."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 4096  # tokens of the vocabulary looked at together
_LEAST = tl.constexpr(-1e38)  # finite, so that the difference of two of them is a number


def statistics(logits: Tensor, tokens: Tensor, temperature: Tensor, into: Tensor) -> None:
    count, size = logits.shape
    logprobs, entropy, logsumexp = into
    _statistics[(count,)](
        logits, tokens, temperature, logprobs, entropy, logsumexp, size, logits.stride(0), BLOCK=_BLOCK, num_warps=8
    )


def gradient(logits: Tensor, tokens: Tensor, pulls: Tensor, dtype: torch.dtype) -> Tensor:
    count, size = logits.shape
    d_logits = torch.empty(count, size, dtype=dtype, device=logits.device)
    of_logprob, of_entropy, entropy, logsumexp, temperature = pulls
    _gradient[(count, triton.cdiv(size, _BLOCK))](
        logits, tokens, of_logprob, of_entropy, entropy, logsumexp, temperature, d_logits,
        size, logits.stride(0), BLOCK=_BLOCK, num_warps=8,
    )  # fmt: skip
    return d_logits


@triton.jit
def _statistics(logits, tokens, temperature, logprobs, entropy, logsumexp, size, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    inverse = 1.0 / tl.load(temperature + row).to(tl.float32)
    # a maximum and two sums for each lane: no exchange between lanes until the end
    most = tl.full([BLOCK], _LEAST, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    weighted = tl.zeros([BLOCK], tl.float32)
    for start in range(0, size, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < size
        score = tl.load(logits + row * stride + columns, mask, float("-inf")) * inverse
        higher = tl.maximum(most, score)
        fade, mass = tl.exp(most - higher), tl.exp(score - higher)
        total = total * fade + mass
        weighted = weighted * fade + tl.where(mask & (mass > 0), score * mass, 0.0)
        most = higher
    peak = tl.max(most, 0)
    fade = tl.exp(most - peak)
    mass = tl.sum(total * fade, 0)
    level = peak + tl.log(mass)
    token = tl.load(tokens + row)
    own = tl.load(logits + row * stride + token).to(tl.float32) * inverse
    tl.store(logprobs + row, own - level)
    tl.store(entropy + row, level - tl.sum(weighted * fade, 0) / mass)
    tl.store(logsumexp + row, level)


@triton.jit
def _gradient(
    logits, tokens, of_logprob, of_entropy, entropy, logsumexp, temperature, d_logits, size, stride,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < size
    inverse = 1.0 / tl.load(temperature + row)
    pull, spread = tl.load(of_logprob + row) * inverse, tl.load(of_entropy + row) * inverse
    score = tl.load(logits + row * stride + columns, mask, 0.0) * inverse
    logprob = score - tl.load(logsumexp + row)
    found = -tl.exp(logprob) * (pull + spread * (logprob + tl.load(entropy + row)))
    found += tl.where(columns == tl.load(tokens + row), pull, 0.0)
    tl.store(d_logits + row * size + columns, found.to(d_logits.dtype.element_ty), mask)
