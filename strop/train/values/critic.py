"""A critic as in PPO (Schulman et al., 1707.06347): a copy of the model with a linear head that learns the returns.

Papers: ppo
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from strop.errors import CheckpointError, ConfigurationError, NumericsError
from strop.models.model import load_model
from strop.roles import Metrics, ValueModel
from strop.train.machine.optimizer import Optimizer
from strop.train.machine.sequences import Sequences
from strop.train.pack import Contexts, fill, lay_out
from strop.types import FloatArray, Group, Trajectory


@dataclass
class Critic(ValueModel):
    """The value of a state is read off the hidden state before each written token; it starts at 0 everywhere."""

    learning_rate: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    clip_norm: float | None = 1.0
    clip: float | None = None  # how far a value may move from the predicted one before it stops learning
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"

    _opened: _Opened | None = field(default=None, init=False, repr=False, compare=False)

    def open(self, model: Path, seed: int) -> None:
        body = load_model(model, device=self.device)
        head = torch.nn.Linear(int(body.config.get_text_config().hidden_size), 1, device=self.device)
        for parameter in head.parameters():  # zero and not random: nothing is expected before anything was seen
            torch.nn.init.zeros_(parameter)
        named = {f"body.{name}": parameter for name, parameter in body.base_model.named_parameters()}
        named |= {f"head.{name}": parameter for name, parameter in head.named_parameters()}
        self._opened = _Opened(body, head, Optimizer(named, self.betas, self.weight_decay, self.clip_norm))

    @torch.no_grad()
    def predict(self, groups: Sequence[Group]) -> None:
        """Fill `values` of every attempt that counts."""
        attempts = [attempt for group in groups for attempt in group.scored]
        for attempt in attempts:
            attempt.values = np.zeros(attempt.num_tokens, dtype=np.float32)
        for part in self._parts(attempts):
            values = self._values(part).cpu().numpy()  # [R]
            ends = np.cumsum([attempt.num_tokens for attempt in part.attempts])
            for attempt, own in zip(part.attempts, np.split(values, ends[:-1]), strict=True):
                attempt.values = own

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """One step on the mean squared error; always says how well the returns were foreseen before it."""
        opened = self._ready()
        parts = list(self._parts([attempt for group in groups for attempt in group.scored]))
        count = sum(len(part.rows) for part in parts)
        if not count:
            raise ConfigurationError("Critic needs at least 1 written token to learn from, got 0")
        opened.optimizer.zero_grad()
        predicted, returns = zip(*(self._backward(part, count) for part in parts), strict=True)
        norm = float(opened.optimizer.gradient_norm())
        metrics = _calibration(torch.cat(predicted).cpu(), torch.cat(returns).cpu())
        if not math.isfinite(norm + metrics["value_loss"]):
            self._refuse(parts, norm, metrics["value_loss"])
        opened.optimizer.step(self.learning_rate, norm)
        return {**metrics, "value_grad_norm": norm}

    def save(self, folder: Path) -> None:
        opened = self._ready()
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in opened.optimizer.parameters.items()}
        save_file(weights, folder / "critic_weights.safetensors")
        opened.optimizer.save(folder, "critic", {})

    def resume(self, folder: Path) -> None:
        parameters = self._ready().optimizer.parameters
        try:
            weights = load_file(folder / "critic_weights.safetensors")
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"cannot read the critic in {folder}: {error}") from error
        if {name: tensor.shape for name, tensor in weights.items()} != {n: t.shape for n, t in parameters.items()}:
            raise CheckpointError(f"the critic in {folder} is not of this model: {len(weights)} other tensors")
        with torch.no_grad():
            for name, tensor in weights.items():
                parameters[name].copy_(tensor)
        self._ready().optimizer.resume(folder, "critic")

    def _ready(self) -> _Opened:
        if self._opened is None:
            raise ConfigurationError("Critic has no model yet: call open(model, seed) first")
        return self._opened

    def _parts(self, attempts: Sequence[Trajectory]) -> Iterator[_Part]:
        written = [attempt for attempt in attempts if attempt.num_tokens]
        if not written:
            return
        contexts = lay_out(written)
        starts = contexts.starts
        for first, last in fill(starts, self.max_tokens):
            yield _part(contexts, starts[first], starts[last], written[first:last], self.device)

    def _values(self, part: _Part) -> Tensor:
        """[R], of the states in which the written tokens were chosen."""
        opened = self._ready()
        hidden = part.sequences.hidden_states(opened.body)
        return opened.head(hidden.index_select(0, part.rows - 1)).squeeze(1)  # type: ignore[no-any-return]

    def _backward(self, part: _Part, count: int) -> tuple[Tensor, Tensor]:
        """Add this part's gradient to the step's; returns values and returns [R]."""
        values = self._values(part)
        returns = _written(part.attempts, [attempt.returns for attempt in part.attempts], "returns").to(self.device)
        error = (values - returns).square()
        if self.clip is not None:
            old = _written(part.attempts, [attempt.values for attempt in part.attempts], "values").to(self.device)
            held = old + (values - old).clamp(-self.clip, self.clip)
            error = torch.maximum(error, (held - returns).square())
        (error.sum() / count).backward()  # type: ignore[no-untyped-call]
        return values.detach(), returns

    def _refuse(self, parts: Sequence[_Part], norm: float, loss: float) -> None:
        self._ready().optimizer.zero_grad()
        tasks = sorted({attempt.task.id for part in parts for attempt in part.attempts})
        raise NumericsError(
            f"critic: loss {loss}, gradient norm {norm}, with tasks {', '.join(tasks)}; its weights were not touched"
        )


@dataclass(eq=False)
class _Opened:
    """What a critic holds while it runs."""

    body: Any
    head: torch.nn.Linear
    optimizer: Optimizer


@dataclass(eq=False)
class _Part:
    """Attempts of one forward pass."""

    sequences: Sequences
    rows: Tensor  # [R], the written tokens
    attempts: Sequence[Trajectory]


def _part(contexts: Contexts, low: int, high: int, attempts: Sequence[Trajectory], device: str) -> _Part:
    lengths = np.unique(contexts.segments[low:high], return_counts=True)[1].tolist()
    tokens, positions = (torch.from_numpy(each[low:high]) for each in (contexts.tokens, contexts.positions))
    rows = torch.from_numpy(np.flatnonzero(contexts.written[low:high])).to(device)
    return _Part(Sequences(tokens, positions, lengths, device), rows, attempts)


def _written(attempts: Sequence[Trajectory], arrays: Sequence[FloatArray | None], what: str) -> Tensor:
    """One number per written token: [R]."""
    found = [array for array in arrays if array is not None]
    need, got = sum(attempt.num_tokens for attempt in attempts), sum(map(len, found))
    if got != need:
        raise ConfigurationError(f"Critic learns from {need} tokens of {len(attempts)} attempts, got {got} {what}")
    return torch.from_numpy(np.concatenate(found).astype(np.float32, copy=False))


def _calibration(values: Tensor, returns: Tensor) -> Metrics:
    """How well values foretold returns: explained variance is 1 when exactly, 0 when no better than their mean."""
    error = returns - values
    spread = float(returns.var(correction=0))
    return {
        "value_loss": float(error.square().mean()),
        "value_bias": -float(error.mean()),
        "explained_variance": 1 - float(error.var(correction=0)) / spread if spread > 0 else 0.0,
    }
