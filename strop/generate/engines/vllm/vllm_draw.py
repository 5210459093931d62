"""Sampling inside vLLM (a logits processor), with random numbers determined by (key, position).

vLLM's own sampler depends on a request's earlier draws, and its logprobs do not say which truncation they belong to.
This processor leaves one possible token per row, whose logit is its logprob: vLLM picks it and reports that logit
(`logprobs_mode="processed_logits"`), so top-k and top-p are exact, and an interrupted completion continues with the
same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor
from vllm.v1.sample.logits_processor import LogitsProcessor, MoveDirectionality

from strop.generate.engines.sampling import draw
from strop.kernels.sampling.counter_random import as_key, uniforms


@dataclass(frozen=True, eq=False)
class Drawn:
    """Sampling settings of a request; `written` is vLLM's own list, which grows with every token."""

    key: int
    prompt: int
    temperature: float
    top_k: int
    top_p: float
    written: Sequence[int]


class DrawByKey(LogitsProcessor):  # type: ignore[misc]
    """Logits processor for all rows of a batch, in every worker; constructed by vLLM."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        self._rows: dict[int, Drawn] = {}

    def is_argmax_invariant(self) -> bool:
        return False

    def update_state(self, batch_update: Any) -> None:
        """Rows come, go and change places."""
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._rows.pop(index, None)
        for index, sampling, _, written in batch_update.added:
            self._rows[index] = Drawn(**sampling.extra_args, written=written)
        for one, other, direction in batch_update.moved:
            moved, replaced = self._rows.pop(one), self._rows.pop(other, None)
            self._rows[other] = moved
            if direction == MoveDirectionality.SWAP and replaced is not None:
                self._rows[one] = replaced

    def apply(self, logits: Tensor) -> Tensor:
        """Logits [N, V] in which each row has one token left."""
        rows = [self._rows[index] for index in range(len(logits))]
        keys = np.array([as_key(row.key) for row in rows], np.uint64)
        places = np.array([row.prompt + len(row.written) for row in rows], np.int64)
        temperature, top_p = (
            np.array([getattr(row, name) for row in rows], np.float32) for name in ("temperature", "top_p")
        )
        top_k = np.array([row.top_k for row in rows], np.int64)
        tokens, logprobs = draw(logits, temperature, top_k, top_p, uniforms(keys, places))
        every = np.arange(len(rows))
        logits.fill_(float("-inf"))
        logits[every, tokens] = logits.new_tensor(logprobs)
        return logits
