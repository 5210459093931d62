"""Logprob and entropy of each token through the output layer, in chunks of rows whose logits are never stored.

The backward pass recomputes a chunk's logits, turns them into their gradient, and multiplies it into the gradients of
states and weight at once; only two numbers per token are stored.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from strop.kernels.attention import capped
from strop.kernels.linear import add_product, product

_ROWS = 32768


def token_logprobs(
    hidden: Tensor, cast: Tensor, weight: Tensor, tokens: Tensor, temperature: Tensor, chunk: int,
    cap: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """hidden [R, H], rounded weight `cast` [V, H], tokens [R], temperature [R] -> logprobs [R] and entropy [R].

    Logits are float32 whatever the states are, bent below a cap where there is one. The gradient of `cast` goes to
    `weight` in its own type.
    """
    return _TokenLogprobs.apply(hidden, cast, weight, tokens, temperature, chunk, cap)  # type: ignore[no-any-return, no-untyped-call]


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, cast: Tensor, weight: Tensor, tokens: Tensor, temperature: Tensor, chunk: int,
        cap: float | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        wide = torch.promote_types(hidden.dtype, torch.float32)
        found = hidden.new_empty(3, len(hidden), dtype=wide)  # logprob, entropy and the logarithm of the sum
        # kernels keep no logits here, so that more rows can go at once
        for rows in _chunks(
            len(hidden), max(chunk, _ROWS) if hidden.is_cuda and hidden.dtype != torch.float32 else chunk
        ):
            statistics(hidden[rows], cast, tokens[rows], temperature[rows], found[:, rows], cap)
        logprobs, entropy, logsumexp = found
        ctx.save_for_backward(hidden, cast, tokens, temperature, entropy, logsumexp)
        ctx.chunk, ctx.weight_dtype = chunk, torch.promote_types(weight.dtype, torch.float32)  # a sum over chunks
        ctx.cap = cap
        return logprobs, entropy

    @staticmethod
    def backward(ctx: Any, d_logprobs: Tensor, d_entropy: Tensor) -> tuple[Tensor | None, ...]:
        hidden, cast, tokens, temperature, entropy, logsumexp = ctx.saved_tensors
        d_hidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        d_weight = torch.zeros_like(cast, dtype=ctx.weight_dtype) if ctx.needs_input_grad[2] else None
        pulls = torch.stack((d_logprobs, d_entropy, entropy, logsumexp, temperature.to(entropy.dtype)))  # [5, R]
        for rows in _chunks(len(hidden), ctx.chunk):
            d_logits = gradient(hidden[rows], cast, tokens[rows], pulls[:, rows], ctx.cap)
            if d_hidden is not None:
                torch.mm(d_logits, cast, out=d_hidden[rows])
            if d_weight is not None:
                add_product(d_weight, d_logits.t(), hidden[rows])
            del d_logits  # or two of them would be held
        return d_hidden, None, d_weight, None, None, None, None


def statistics(
    hidden: Tensor, weight: Tensor, tokens: Tensor, temperature: Tensor, into: Tensor, cap: float | None = None
) -> None:
    """Of hidden [C, H] @ weight [V, H]' at the temperature: logprob, entropy and log-sum-exp, written to [3, C]."""
    if hidden.is_cuda and hidden.dtype != torch.float32:  # which a tile's product would cut to fewer bits
        from strop.kernels.triton import head

        head.statistics(hidden, weight, tokens, temperature, into, cap)
    else:
        reference_statistics(capped(product(hidden, weight.t(), into.dtype), cap), tokens, temperature, into)


def gradient(hidden: Tensor, weight: Tensor, tokens: Tensor, pulls: Tensor, cap: float | None = None) -> Tensor:
    """Gradient of the logits [C, V]; `pulls` [5, C] are those of logprob and entropy, and what was computed."""
    if hidden.is_cuda and hidden.dtype != torch.float32:
        from strop.kernels.triton import head

        return head.gradient(hidden, weight, tokens, pulls, cap)
    logits = capped(product(hidden, weight.t(), pulls.dtype), cap)
    return reference_gradient(logits, tokens, pulls, hidden.dtype, cap)


def reference_statistics(logits: Tensor, tokens: Tensor, temperature: Tensor, into: Tensor) -> None:
    scores = logits / temperature.unsqueeze(1)
    into[2] = scores.logsumexp(-1)
    logprobs = scores - into[2].unsqueeze(1)
    into[0] = logprobs.gather(1, tokens.unsqueeze(1)).squeeze(1)
    into[1] = -(logprobs.exp() * logprobs).sum(-1)


def reference_gradient(
    logits: Tensor, tokens: Tensor, pulls: Tensor, dtype: torch.dtype, cap: float | None = None
) -> Tensor:
    """With p = softmax(x / t): d log p_k = (1_k - p) / t, d entropy = -p (log p + entropy) / t; x = c tanh(z / c)."""
    of_logprob, of_entropy, entropy, logsumexp, temperature = (each.unsqueeze(1) for each in pulls)
    logprobs = logits / temperature - logsumexp
    probabilities = logprobs.exp()
    found = -probabilities * (of_logprob + of_entropy * (logprobs + entropy))
    found.scatter_add_(1, tokens.unsqueeze(1), of_logprob)
    found = found if cap is None else found * (1 - (logits / cap).square())
    return torch.div(found, temperature).to(dtype)


def _chunks(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
