"""Forward passes of a policy over packed batches, in one precision on one device; shared by all trainers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from strop.backends import EXPERTS, Objective
from strop.kernels.attention import moved
from strop.kernels.cpu.train import compiled
from strop.models.layers.adapters import Unadapted
from strop.models.pictures import ReadArrays
from strop.training.batch import Batch, Frozen
from strop.training.machine.llama import LlamaForward, llama_forward
from strop.training.machine.logprobs import PolicyOutput
from strop.training.machine.masked_views import Reading, Viewed
from strop.training.machine.packed_sequences import Sequences
from strop.types import Metrics


@dataclass(eq=False)
class Forward:
    """Forward passes without weights: the model is an argument of each call."""

    device: str
    dtype: str  # what is computed in; weights stay fp32
    chunk: int  # rows of logits that exist at once
    fused: str = "off"  # on: kernels of our own where the family has them; auto: where they pay
    is_checkpointed: bool = False  # layers are computed again going backward, instead of kept
    reading: Reading | None = None  # of a model that fills masks; None: from left to right
    pictures: ReadArrays | None = None  # of the run folder
    _layouts: WeakKeyDictionary[Batch, _Layout] = field(default_factory=WeakKeyDictionary)
    _fast: WeakKeyDictionary[Any, LlamaForward | None] = field(default_factory=WeakKeyDictionary)  # by model

    def loss(self, model: Any, batch: Batch, objective: Objective) -> tuple[Tensor, Metrics]:
        """What a batch adds to the step's loss and metrics."""
        with self._precision():
            return objective(*self._output(model, batch))

    def logprobs(self, model: Any, batch: Batch) -> Tensor:
        """[T], zero where not trainable."""
        with torch.no_grad(), self._precision():
            output, _ = self._output(model, batch)
            return output.logprobs.to(batch.tokens.device)

    def frozen(self, model: Any, batch: Batch, head: Callable[[Tensor], Tensor]) -> Frozen:
        """What is needed for the model's distributions at the trainable tokens; `head` makes them of hidden states."""
        with torch.no_grad(), self._precision():
            output, _ = self._output(model, batch)
            return Frozen(output.before(output.rows), head)

    def look(self, model: Any, batch: Batch, wanted: Sequence[Callable[[PolicyOutput], Tensor]]) -> list[Tensor]:
        """What the model says about a batch, in one pass, without gradient, on the batch's own device."""
        with torch.no_grad(), self._precision():
            output, _ = self._output(model, batch)
            return [each(output).float().to(batch.tokens.device) for each in wanted]

    def nothing(self, model: Any, batch: Batch) -> Tensor:
        """A zero that depends on every weight, for a rank that has no token to train but must keep step."""
        with self._precision():
            output, _ = self._output(model, replace(batch, trainable=torch.zeros_like(batch.trainable)))
            return output.logprobs.sum()

    def _output(self, model: Any, batch: Batch) -> tuple[PolicyOutput, Batch]:
        layout, fast_path = self._layout(batch), self.fast_path(model)
        computed = layout.sequences.computed(model, fast_path)
        rows, batch = layout.rows, _moved(batch, self.device)  # a GPU is at work by now
        return PolicyOutput(model, computed, batch, self.chunk, rows, layout.sequences, fast_path), batch

    @property
    def computes_in(self) -> torch.dtype:
        return torch.bfloat16 if self.dtype == "bfloat16" else torch.float32

    def refresh(self, model: Any) -> None:
        """Round the weights that the next pass reads, while a GPU is still busy with the last one."""
        if (fast_path := self.fast_path(model)) is not None:
            fast_path.rounding.refresh()

    @property
    def wants_fast(self) -> bool:
        pays = self.dtype == "bfloat16" if self._is_gpu else compiled() is not None
        if self.reading is not None:
            return False  # kernels of our own read from left to right
        return self.fused == "on" or (self.fused == "auto" and pays)

    @property
    def _is_gpu(self) -> bool:
        return torch.device(self.device).type == "cuda"

    def fast_path(self, model: Any) -> LlamaForward | None:
        """The model's fast forward, if it is wanted and there is one."""
        if not self.wants_fast:
            return None
        if isinstance(model, Unadapted) and model not in self._fast:
            adapted = self.fast_path(model.model)
            self._fast[model] = None if adapted is None else adapted.without_adapters()
        if model not in self._fast:
            self._fast[model] = llama_forward(model, self.computes_in, says_why_not=self._is_gpu or self.fused == "on")
        found = self._fast[model]
        if found is not None:
            found.is_checkpointed = self.is_checkpointed
        return found

    def _precision(self) -> torch.autocast:
        return torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=self.dtype == "bfloat16")

    def _layout(self, batch: Batch) -> _Layout:
        """Worked out once per batch, for annotate and for every epoch."""
        if (layout := self._layouts.get(batch)) is None:
            layout = self._layouts[batch] = _Layout(self._sequences(batch), batch.trainable, self.device)
        return layout

    def _sequences(self, batch: Batch) -> Sequences | Viewed:
        if self.reading is not None:
            return Viewed(batch, self.reading, self.device)
        lengths = [size for size in batch.segments.bincount().tolist() if size]
        return Sequences(batch.tokens, batch.positions, lengths, self.device, batch.aux.get(EXPERTS), self.pictures)


@dataclass(eq=False)
class _Layout:
    """Positions of a batch's tokens, on the device."""

    sequences: Sequences | Viewed
    trainable: Tensor  # [T]
    device: str

    @cached_property
    def rows(self) -> Tensor:
        """[R], the trainable tokens."""
        return moved(self.trainable.nonzero().squeeze(1), self.device)


def _moved(batch: Batch, device: str) -> Batch:
    """The batch on a device; itself where it is there already."""
    if batch.tokens.device == torch.device(device):
        return batch
    return batch.changed(lambda _, tensor: moved(tensor, device))
