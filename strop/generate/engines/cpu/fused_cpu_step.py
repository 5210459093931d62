"""Fused decode step of a small Llama on a CPU: one compiled call for the whole step, or for several steps.

Weights are stored a second time, in the memory order of the compiled matrix multiplications, so this is for small
models; with larger ones the overhead of separate calls does not matter.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.generate.engines.cpu.compiled_llama import CompiledLlama, LayerParts, is_simple, proven
from strop.generate.engines.cpu.decode_rows import Rows
from strop.generate.engines.cpu.kv_cache import Cached, KeyValues
from strop.generate.engines.stops import end_tokens
from strop.kernels.cpu.decode import Decode, compiled_decode
from strop.kernels.cpu.panels import panels_for
from strop.kernels.cpu.step import (
    PackedLinear,
    StepLayer,
    StepModel,
    Steps,
    StepTable,
    StepWork,
    compiled_steps,
)
from strop.types import IntArray

MOST_WEIGHTS = 1 << 24  # 64 MiB


class WholeStep(CompiledLlama):
    """Fused step; the bits of a row depend on its tokens and the weights only, not on other rows or on chunking."""

    def __init__(self, model: Any, decode: Decode, steps: Steps) -> None:
        super().__init__(model, decode)
        self._steps = steps
        self._ends = end_tokens(model)
        self._parameters: list[Tensor] = list(model.parameters())
        self._seen: list[int] = []  # how often each parameter had changed when it was packed
        self._head: Tensor = model.get_output_embeddings().weight.detach()
        linears = [product[0] for layer in self._layers for product in _products(layer)]
        self._weights = [*linears, self._head]
        self._panels = [panels_for(weight) for weight in self._weights]
        self._layer_array = (StepLayer * len(self._layers))(*map(self._layer, range(len(self._layers))))
        self._model = self._whole()
        self._memory: KeyValues | None = None  # whose keys these are

    # ---- what the decoder asks

    def __call__(self, tokens: Tensor, positions: Tensor, plan: Cached) -> Tensor:
        self._prepare(plan.memory)
        pairs = [(s.source, destination, s.length) for s in plan.shares for destination in s.destinations]
        shares = np.array(pairs, dtype=np.int64)
        pointers = (each.data_ptr() for each in (tokens, plan.rows, plan.positions))
        return self._steps.forward(
            self._model, StepWork(len(tokens), *pointers, None, None, len(pairs), shares.ctypes.data)
        )

    def append(self, table: Rows, rows: IntArray, hidden: Tensor, version: int) -> int:
        """One more token for each row from its last hidden state: how many have logits that are not finite."""
        return self._steps.append(self._model, self._table(table, version), rows, hidden)

    def write(self, table: Rows, memory: KeyValues, rows: IntArray, steps: int, version: int) -> tuple[int, int]:
        """Up to `steps` tokens for each row, until one ends: how many it were, and how many rows are not finite."""
        self._prepare(memory)
        lenders, shared = table.lender[rows], table.shared[rows]
        work = StepWork(len(rows), None, rows.ctypes.data, None, lenders.ctypes.data, shared.ctypes.data, 0, None)
        return self._steps.write(self._model, self._table(table, version), work, steps)

    # ---- where things lie

    def _prepare(self, memory: KeyValues) -> None:
        """Weights that changed are packed again, and keys may lie elsewhere since memory grew."""
        if (seen := [parameter._version for parameter in self._parameters]) != self._seen:
            for weight, panels in zip(self._weights, self._panels, strict=True):
                self._steps.pack(weight, panels)
            self._seen = seen
        self._model.threads = torch.get_num_threads()
        if self._memory is not memory or self._model.capacity != memory.capacity:
            self._find(memory)

    def _find(self, memory: KeyValues) -> None:
        self._turn_up_to(memory.capacity)
        model, first, self._memory = self._model, self._layers[0], memory
        model.capacity = memory.capacity
        model.cosine, model.sine = (turns.data_ptr() for turns in self._turns)
        like = torch.empty(0, first.num_key_heads, first.head_size)
        for index, layer in enumerate(self._layer_array):
            layer.keys, layer.values = (tensor.data_ptr() for tensor in memory.layer(index, like, like))

    def _layer(self, index: int) -> StepLayer:
        layer = self._layers[index]
        norms = (layer.query_norm, layer.key_norm)
        heads = (None if norm is None else norm.weight.data_ptr() for norm in norms)
        packed = [
            PackedLinear(self._panels[4 * index + i].data_ptr(), None if bias is None else bias.data_ptr())
            for i, (_, bias) in enumerate(_products(layer))
        ]
        window = torch.iinfo(torch.int64).max if layer.window is None else layer.window
        before = (layer.before_attention.weight.data_ptr(), layer.before_feed_forward.weight.data_ptr())
        return StepLayer(*before, *heads, *packed, None, None, window, layer.scale)

    def _whole(self) -> StepModel:
        first = self._layers[0]
        num_heads = len(first.query_key_value[0]) // first.head_size - 2 * first.num_key_heads
        return StepModel(
            layers=len(self._layers), hidden=self._embedding.shape[1], inner=first.down[0].shape[1],
            query_heads=num_heads, key_heads=first.num_key_heads, size=first.head_size, vocabulary=len(self._head),
            layer=ctypes.cast(self._layer_array, ctypes.POINTER(StepLayer)), embedding=self._embedding.data_ptr(),
            norm=self._norm.data_ptr(), head=PackedLinear(self._panels[-1].data_ptr(), None), epsilon=self._epsilon,
        )  # fmt: skip

    def _table(self, table: Rows, version: int) -> StepTable:
        columns = (table.tokens, table.versions, table.logprobs, table.length, table.computed)
        given = (table.limit, table.key, table.temperature)
        pointers = [each.ctypes.data for each in (self._ends, *columns, *given)]
        return StepTable(table.capacity, version, len(self._ends), *pointers)


def _products(layer: LayerParts) -> tuple[Any, ...]:
    return layer.query_key_value, layer.output, layer.gate_up, layer.down


@torch.no_grad()
def whole_step(model: Any) -> WholeStep | None:
    """The step for this model, or None where weights are many or something else is needed."""
    is_small = sum(parameter.numel() for parameter in model.parameters()) <= MOST_WEIGHTS
    decode, steps = (compiled_decode(), compiled_steps()) if is_small and is_simple(model) else (None, None)
    return None if decode is None or steps is None else proven(WholeStep(model, decode, steps), model)
