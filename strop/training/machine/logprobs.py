"""Logprobs and entropies of the policy on a packed batch, in chunks so that the full logits [T, V] never exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from strop.errors import ConfigurationError
from strop.models.model import logits
from strop.training.batch import Batch, Frozen
from strop.training.machine.llama import LlamaForward
from strop.training.machine.masked_views import Viewed
from strop.training.machine.packed_sequences import Sequences


class PolicyOutput:
    """Implementation of `roles.Output`: everything is [T], zero where not trainable, and computed at first use.

    The hidden state at t - 1 predicts token t; only those before a trainable token go through the output layer.
    `computed` are the states of `sequences`, or without those of all tokens. `rows` are the indices of the trainable
    tokens, for a caller that has them already; `fast_path` is a fused computation from hidden states to logprobs.
    """

    def __init__(
        self,
        model: Any,
        computed: Tensor,
        batch: Batch,
        chunk: int,
        rows: Tensor | None = None,
        sequences: Sequences | Viewed | None = None,
        fast_path: LlamaForward | None = None,
    ) -> None:
        self.model = model
        self.fast_path = fast_path
        self._computed = computed  # [U, hidden]
        self.batch = batch
        self.chunk = chunk
        self.rows = batch.trainable.nonzero().squeeze(1) if rows is None else rows  # [R]
        self.sequences = sequences

    @cached_property
    def logprobs(self) -> Tensor:
        return self._on_tokens(self._both.select(1, 0), self.rows)

    @cached_property
    def entropy(self) -> Tensor:
        return self._on_tokens(self._both.select(1, 1), self.rows)

    def _check(self, where: Tensor | None = None) -> None:
        if self.sequences is not None:
            self.sequences.check(self.batch, where)

    @property
    def states(self) -> Tensor:
        self._check()
        return self._on_tokens(self.before(self.rows), self.rows)

    @property
    def hidden(self) -> Tensor:
        """Of every token: [T, hidden]."""
        return self._computed if self.sequences is None else self._computed.index_select(0, self.sequences.places)

    def before(self, rows: Tensor) -> Tensor:
        """The states in which these tokens were chosen: [R, hidden]."""
        places = rows - 1 if self.sequences is None else self.sequences.before(rows)
        return self._computed.index_select(0, places)

    def over_logits(self, function: Callable[..., Tensor], *columns: Tensor, where: Tensor | None = None) -> Tensor:
        """Apply `function(logits [C, V] / temperature, tokens [C], *columns [C]) -> [C]` in chunks: [T]."""
        self._check(where)
        rows = self.rows if where is None else where.nonzero().squeeze(1)
        return self._on_tokens(self._over_rows(function, rows, columns), rows)

    def over_both(self, function: Callable[..., Tensor], policy: str, *columns: Tensor) -> Tensor:
        """The same with the frozen policy's logits, at the same temperature, after those of this one."""
        frozen = self.batch.frozen.get(policy)
        if frozen is None:
            raise ConfigurationError(
                f"the batch has no logits of {policy}: whoever reads them needs Logits({policy!r})"
            )
        self._check()
        return self._on_tokens(self._over_rows(function, self.rows, columns, frozen), self.rows)

    def reread(self, others: Tensor, share: float) -> PolicyOutput:
        """The batch read again with each written token's embedding mixed with that of another token."""
        if self.sequences is None:
            raise ConfigurationError("this output was made from hidden states alone: there is nothing to read again")
        mixed = self.batch.trainable.to(self.batch.share.dtype) * share  # [T]
        computed = self.sequences.computed_between(self.model, others, mixed)
        return PolicyOutput(self.model, computed, self.batch, self.chunk, self.rows, self.sequences)

    @cached_property
    def _both(self) -> Tensor:
        """Logprob and entropy in one pass over the output layer: [R, 2]."""
        if self.fast_path is None:
            found = self._over_rows(_logprob_and_entropy, self.rows)
            weights = None if self.sequences is None else self.sequences.weights
            return found if weights is None else found * weights.index_select(0, self.rows).unsqueeze(1)
        hidden = self.before(self.rows)
        tokens, temperature = (each.index_select(0, self.rows) for each in (self.batch.tokens, self.batch.temperature))
        return torch.stack(self.fast_path.logprobs(hidden, tokens, temperature, self.chunk), 1)

    def _over_rows(
        self,
        function: Callable[..., Tensor],
        rows: Tensor,
        columns: Sequence[Tensor] = (),
        frozen: Frozen | None = None,
    ) -> Tensor:
        hidden = self.before(rows)
        given = [self.batch.temperature, self.batch.tokens, *columns]
        parts = [each.index_select(0, rows) for each in given] + ([] if frozen is None else [frozen.hidden])
        chunks = zip(*(torch.split(each, self.chunk) for each in (hidden, *parts)), strict=True)
        # a single chunk is within the memory bound already, so its logits are kept instead of computed twice
        may_forget = torch.is_grad_enabled() and len(rows) > self.chunk
        head = None if frozen is None else frozen.head
        return torch.cat([self._over_chunk(function, may_forget, head, *chunk) for chunk in chunks])

    def _over_chunk(
        self,
        function: Callable[..., Tensor],
        may_forget: bool,
        head: Callable[[Tensor], Tensor] | None,
        hidden: Tensor,
        temperature: Tensor,
        *rest: Tensor,
    ) -> Tensor:
        def compute(hidden: Tensor) -> Tensor:
            own = logits(self.model, hidden).float() / temperature.unsqueeze(1)
            if head is None:
                return function(own, *rest)
            with torch.no_grad():
                other = head(rest[-1]).float() / temperature.unsqueeze(1)
            return function(own, other, *rest[:-1])

        if not may_forget:
            return compute(hidden)
        return checkpoint(compute, hidden, use_reentrant=False, preserve_rng_state=False)  # type: ignore[no-any-return]

    def _on_tokens(self, values: Tensor, rows: Tensor) -> Tensor:
        """[R, ...] -> [T, ...]."""
        return values.new_zeros(len(self.batch.tokens), *values.shape[1:]).index_copy(0, rows, values)


def _logprob_and_entropy(scores: Tensor, tokens: Tensor) -> Tensor:
    """[C, V], [C] -> [C, 2]."""
    logprobs = scores.log_softmax(-1)
    entropy = -(logprobs.exp() * logprobs).sum(-1)
    return torch.stack([logprobs.gather(1, tokens.unsqueeze(1)).squeeze(1), entropy], 1)
