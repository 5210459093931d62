"""What the policy says about a packed batch, computed in chunks so that the full logits [T, V] never exist."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from strop.model import logits
from strop.types import Batch


class PolicyOutput:
    """Plays `roles.Output`: everything is [T], zero where not trainable, and computed when first asked for.

    The hidden state at t - 1 predicts token t; only those before a trainable token go through the output layer.
    `rows` are the indices of the trainable tokens, for a caller that knows them already.
    """

    def __init__(self, model: Any, hidden: Tensor, batch: Batch, chunk: int, rows: Tensor | None = None) -> None:
        self.model = model
        self.hidden = hidden  # [T, hidden]
        self.batch = batch
        self.chunk = chunk
        self.rows = batch.trainable.nonzero().squeeze(1) if rows is None else rows  # [R]

    @cached_property
    def logprobs(self) -> Tensor:
        return self._on_tokens(self._both.select(1, 0))

    @cached_property
    def entropy(self) -> Tensor:
        return self._on_tokens(self._both.select(1, 1))

    def over_logits(self, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Apply `function(logits [C, V] / temperature, tokens [C]) -> [C]` in chunks: [T]."""
        return self._on_tokens(self._over_rows(function))

    @cached_property
    def _both(self) -> Tensor:
        """Logprob and entropy in one pass over the output layer: [R, 2]."""
        return self._over_rows(_logprob_and_entropy)

    def _over_rows(self, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        hidden = self.hidden.index_select(0, self.rows - 1)
        tokens = self.batch.tokens.index_select(0, self.rows)
        temperature = self.batch.temperature.index_select(0, self.rows).unsqueeze(1)
        chunks = zip(*(torch.split(each, self.chunk) for each in (hidden, tokens, temperature)), strict=True)
        # a single chunk is within the memory bound already, so its logits are kept instead of computed twice
        may_forget = torch.is_grad_enabled() and len(self.rows) > self.chunk
        return torch.cat([self._over_chunk(function, may_forget, *parts) for parts in chunks])

    def _over_chunk(
        self,
        function: Callable[[Tensor, Tensor], Tensor],
        may_forget: bool,
        hidden: Tensor,
        tokens: Tensor,
        temperature: Tensor,
    ) -> Tensor:
        def compute(hidden: Tensor) -> Tensor:
            return function(logits(self.model, hidden).float() / temperature, tokens)

        if not may_forget:
            return compute(hidden)
        return checkpoint(compute, hidden, use_reentrant=False, preserve_rng_state=False)  # type: ignore[no-any-return]

    def _on_tokens(self, values: Tensor) -> Tensor:
        """[R] -> [T]."""
        return values.new_zeros(len(self.batch.tokens)).index_copy(0, self.rows, values)


def _logprob_and_entropy(scores: Tensor, tokens: Tensor) -> Tensor:
    """[C, V], [C] -> [C, 2]."""
    logprobs = scores.log_softmax(-1)
    entropy = -(logprobs.exp() * logprobs).sum(-1)
    return torch.stack([logprobs.gather(1, tokens.unsqueeze(1)).squeeze(1), entropy], 1)
