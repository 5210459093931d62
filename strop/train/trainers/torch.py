"""The trainer in plain PyTorch: packed sequences, micro-batches that never change the gradient, AdamW, one device."""

from __future__ import annotations

import json
import math
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from strop.errors import CheckpointError, ConfigurationError, NumericsError, nearest
from strop.model import load_model, parameters
from strop.roles import Metrics, Objective
from strop.train.logprobs import PolicyOutput
from strop.train.optimizer import Optimizer
from strop.train.sequences import Sequences
from strop.types import Batch

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# everything beside the weights that a tokenizer or a chat needs
_COPIED = ("tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt", "*.model", "*.jinja")


@dataclass
class TorchTrainer:
    """Weights and moments are fp32; `dtype` is what the forward pass computes in."""

    learning_rate: float = 1e-4  # may be changed between two steps
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    warmup_steps: int = 0
    clip_norm: float | None = 1.0
    max_tokens: int = 4096  # of one micro-batch
    chunk: int = 1024  # rows of logits that exist at once
    device: str = "cpu"
    dtype: str = "float32"
    reference: str | None = None  # model folder; None: the weights training began with

    _opened: _Opened | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise ConfigurationError(f"TorchTrainer has no dtype {self.dtype!r}: {nearest(self.dtype, _DTYPES)}")
        if self.dtype == "bfloat16" and self.device == "cpu":  # slower than float32 there, and some CPUs cannot
            raise ConfigurationError('bfloat16 needs a GPU: set device="cuda", or dtype="float32"')
        for name in ("learning_rate", "max_tokens", "chunk"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(f"TorchTrainer needs {name} > 0, got {getattr(self, name)}")

    def open(self, model: Path, seed: int) -> None:
        self._opened = self._open(model, model, seed)

    def annotate(self, batches: Sequence[Batch], needs: frozenset[str]) -> None:
        """Fill reference_logprobs and proximal_logprobs where they are needed."""
        opened = self._ready()
        if unknown := needs - {"reference", "proximal"}:
            raise ConfigurationError(f"TorchTrainer fills reference and proximal, not {', '.join(sorted(unknown))}")
        if "reference" in needs and opened.reference is None:
            folder = opened.source if self.reference is None else Path(self.reference)
            opened.reference = load_model(folder, device=self.device).requires_grad_(False)
        for batch in batches:
            if "reference" in needs:
                batch.reference_logprobs = self._logprobs(opened.reference, batch)
            if "proximal" in needs:
                batch.proximal_logprobs = self._logprobs(opened.model, batch)

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        """One optimizer step over all batches; weights move only if every loss and the gradient are finite."""
        opened = self._ready()
        if not batches:
            raise ConfigurationError("a step needs at least 1 batch, got 0: every attempt failed or wrote nothing")
        opened.optimizer.zero_grad()
        metrics: defaultdict[str, float] = defaultdict(float)
        losses = [self._backward(batch, objective, metrics) for batch in batches]
        # one transfer, so that a device is waited for once per step
        *values, norm = torch.stack([*losses, opened.optimizer.gradient_norm()]).tolist()
        if not math.isfinite(sum(values) + norm):
            self._refuse(batches, values, norm, objective)
        learning_rate = self._learning_rate(opened.optimizer.num_steps)
        opened.optimizer.step(learning_rate, norm)
        return {**metrics, "loss": sum(values), "grad_norm": norm, "learning_rate": learning_rate}

    def weights(self) -> dict[str, Tensor]:
        return parameters(self._ready().model)

    def save(self, folder: Path) -> None:
        """Write a Hugging Face model folder, and beside it what is needed to go on to the same bits."""
        opened = self._ready()
        opened.model.save_pretrained(folder)
        for path in {path for pattern in _COPIED for path in opened.source.glob(pattern) if path.is_file()}:
            shutil.copyfile(path, folder / path.name)
        opened.optimizer.save(folder, "trainer", {"seed": opened.seed})

    def resume(self, folder: Path) -> None:
        opened = self._ready()
        try:
            self._opened = self._open(folder, opened.source, opened.seed)
        except (OSError, ValueError, RuntimeError, json.JSONDecodeError) as error:
            raise CheckpointError(f"cannot read the model in {folder}: {error}") from error
        self._opened.optimizer.resume(folder, "trainer")

    def _open(self, folder: Path, source: Path, seed: int) -> _Opened:
        model = load_model(folder, device=self.device)
        optimizer = Optimizer(dict(model.named_parameters()), self.betas, self.weight_decay, self.clip_norm)
        return _Opened(model, optimizer, Path(source), seed)

    def _ready(self) -> _Opened:
        if self._opened is None:
            raise ConfigurationError("TorchTrainer has no model yet: call open(model, seed) first")
        return self._opened

    def _learning_rate(self, num_steps: int) -> float:
        """Rises over the first `warmup_steps` steps, then stays."""
        return self.learning_rate * min(1.0, (num_steps + 1) / max(self.warmup_steps, 1))

    def _output(self, model: Any, batch: Batch) -> tuple[PolicyOutput, Batch]:
        layout = self._layout(batch)
        batch = _moved(batch, self.device)
        return PolicyOutput(model, layout.sequences.hidden_states(model), batch, self.chunk, layout.rows), batch

    def _backward(self, batch: Batch, objective: Objective, metrics: defaultdict[str, float]) -> Tensor:
        """Add this batch's gradient and figures to the step's; returns its loss."""
        with self._precision():
            loss, figures = objective(*self._output(self._ready().model, batch))
        loss.backward()  # type: ignore[no-untyped-call]
        for name, value in figures.items():
            metrics[name] += value
        return loss.detach()

    def _precision(self) -> torch.autocast:
        return torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=self.dtype == "bfloat16")

    @torch.no_grad()
    def _logprobs(self, model: Any, batch: Batch) -> Tensor:
        with self._precision():
            output, _ = self._output(model, batch)
            return output.logprobs.to(batch.tokens.device)

    def _layout(self, batch: Batch) -> _Layout:
        """Worked out once per batch, for annotate and for every epoch."""
        layouts = self._ready().layouts
        if (layout := layouts.get(batch)) is None:
            lengths = [size for size in batch.segments.bincount().tolist() if size]
            rows = batch.trainable.nonzero().squeeze(1).to(self.device)
            sequences = Sequences(batch.tokens, batch.positions, lengths, self.device)
            layout = layouts[batch] = _Layout(sequences, rows)
        return layout

    def _refuse(self, batches: Sequence[Batch], losses: list[float], norm: float, objective: Objective) -> None:
        """Find the batches behind a number that is not finite, one at a time, and say whose they are."""
        opened = self._ready()
        guilty = [batch for batch, loss in zip(batches, losses, strict=True) if not math.isfinite(loss)]
        for batch in batches if not guilty else ():
            opened.optimizer.zero_grad()
            self._backward(batch, objective, defaultdict(float))
            if not math.isfinite(float(opened.optimizer.gradient_norm())):
                guilty.append(batch)
        opened.optimizer.zero_grad()
        tasks = sorted({task for batch in guilty or batches for task in batch.task_ids})
        raise NumericsError(
            f"optimizer step {opened.optimizer.num_steps + 1}: loss {sum(losses)}, gradient norm {norm}, from "
            f"{len(guilty)} of {len(batches)} batches, with tasks {', '.join(tasks)}; the weights were not touched"
        )


@dataclass(eq=False)
class _Layout:
    """How a batch's tokens lie, on the device."""

    sequences: Sequences
    rows: Tensor  # [R], the trainable tokens


@dataclass(eq=False)
class _Opened:
    """What a trainer holds while it runs."""

    model: Any
    optimizer: Optimizer
    source: Path  # where training began: the tokenizer, and the reference unless another is named
    seed: int
    reference: Any = None
    layouts: WeakKeyDictionary[Batch, _Layout] = field(default_factory=WeakKeyDictionary)


def _moved(batch: Batch, device: str) -> Batch:
    """The batch on a device; itself where it is there already."""
    if batch.tokens.device == torch.device(device):
        return batch
    found = {each.name: getattr(batch, each.name) for each in fields(batch)}
    moved: dict[str, Any] = {name: value.to(device) for name, value in found.items() if isinstance(value, Tensor)}
    return replace(batch, **moved)
