"""Low-memory AdamW: weights, gradients and moments in fewer bytes than float32.

Sums are computed in float32, a piece of a matrix at a time, and rounded stochastically (`low_precision.py`). Random
numbers depend on the seed, the step and the parameter's name, so that a run can be repeated and resumed to the same
bits. Vectors (norms, biases) are few and stay in float32. The second moment is stored as its root, which doubles the
range of exponents. Gradients of micro-batches are added with stochastic rounding too: with rounding to nearest, one of
hundreds would be lost against the sum of the others.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from strop.errors import CheckpointError, NumericsError
from strop.models.optimizers.adamw import Optimizer, read_counts
from strop.models.optimizers.low_precision import EightBits, Halved, Numbers, Split, Whole, rng_of, split

_PIECE = 1 << 24  # numbers that are float32 at once
_EPSILON = 1e-8  # as torch.optim.AdamW has it


@dataclass(frozen=True)
class Holding:
    """Bytes of memory for each trained number of a matrix."""

    weights: int
    rest: int  # bits that were cut off
    rounded: int  # a copy in what is computed in
    gradients: int
    moments: int
    words: str

    @property
    def total(self) -> int:
        return self.weights + self.rest + self.rounded + self.gradients + self.moments

    @property
    def is_narrow(self) -> bool:
        return self.gradients < 4

    @property
    def frozen(self) -> torch.dtype:
        """In which models beside it are held that do not learn."""
        return torch.bfloat16 if self.is_narrow else torch.float32

    @property
    def frozen_bytes(self) -> int:
        """Of a weight of such a model, with its rounded copy."""
        return 2 if self.is_narrow else 6


FLOAT32 = 18  # bytes of the first
HOLDINGS = {
    holding.total: holding
    for holding in (
        Holding(4, 0, 2, 4, 8, "weights, gradients and moments in float32"),
        Holding(2, 2, 0, 2, 4, "float32 weights as bfloat16 and 16 bits more, gradients and moments in bfloat16"),
        Holding(2, 0, 0, 2, 2, "bfloat16 weights rounded by chance, gradients in bfloat16, moments in 8 bits"),
    )
}  # by their bytes, most and best first


@torch.no_grad()
def narrowed(model: torch.nn.Module, holding: Holding) -> dict[str, Tensor]:
    """Put a model's matrices into bfloat16; returns what was cut off, by name, where that is to be held."""
    rests: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            parameter.data, rest = split(parameter.detach())
            if holding.rest:
                rests[name] = rest.view(-1)
    return rests


@dataclass(eq=False)
class _Moved:
    """A parameter with its moments."""

    weight: Numbers
    first: Numbers
    root: Numbers
    steps: int = 0

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All but the parameter itself, which a model holds."""
        parts = {"first": self.first, "root": self.root} | ({"weight": self.weight} if self._has_rest else {})
        found = {f"{part}.{name}": each for part, held in parts.items() for name, each in held.tensors.items()}
        return {**found, "steps": torch.tensor(self.steps)}

    @property
    def _has_rest(self) -> bool:
        return isinstance(self.weight, Split)


class FrugalOptimizer(Optimizer):
    """AdamW with low-precision states; `rests` are the bits that `narrowed` cut off, `held_bytes` those of both moments
    of a number.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        betas: tuple[float, float],
        weight_decay: float,
        clip_norm: float | None,
        rests: Mapping[str, Tensor],
        held_bytes: int,
        seed: int,
    ) -> None:
        super().__init__(parameters, betas, weight_decay, clip_norm)
        self._betas, self._weight_decay, self._seed = betas, weight_decay, seed
        self._moved = {
            name: _Moved(_weight(each, rests.get(name)), *_moments(each, held_bytes))
            for name, each in self.parameters.items()
        }
        self._added: Counter[str] = Counter()  # gradients behind the first one of a step
        mine = weakref.ref(self)  # or a model that is let go would wait for its optimizer
        for name, each in self.parameters.items():
            if each.dtype != torch.float32:
                each.register_hook(partial(_summed, mine, name))  # type: ignore[no-untyped-call]

    def zero_grad(self) -> None:
        super().zero_grad()
        self._added.clear()

    @torch.no_grad()
    def added(self, name: str, gradient: Tensor) -> Tensor:
        """A parameter's gradient with those before it, rounded by chance; it takes their place."""
        parameter = self.parameters[name]
        if (total := parameter.grad) is None:
            return gradient
        self._added[name] += 1
        rng = rng_of(total.device, self._seed, self.num_steps, name, self._added[name])
        sums, more = Halved(total), gradient.reshape(-1)
        for piece in _pieces(len(more)):
            sums.write(piece, sums.read(piece).add_(more[piece]), rng)
        parameter.grad = None
        return total

    def gradient_norm(self) -> Tensor:
        norms = [torch.linalg.vector_norm(each, dtype=torch.float32) for each in self._gradients()]
        return torch.stack(norms).square().sum().sqrt()

    def step(self, learning_rate: float, gradient_norm: float) -> None:
        if not math.isfinite(gradient_norm):
            raise NumericsError(f"gradient norm {gradient_norm}: the weights were not touched")
        limit = math.inf if self.clip_norm is None else self.clip_norm
        scale = min(1.0, limit / (gradient_norm + 1e-6))
        for name, parameter in self.parameters.items():
            if parameter.grad is not None:
                self._move(name, parameter.grad.reshape(-1), scale, learning_rate)
        self.num_steps += 1

    def step_unless_broken(self, learning_rate: float, gradient_norm: Tensor, losses: Tensor) -> None:
        """Waits for the GPU: a step of a model so large takes far longer."""
        if bool(gradient_norm.isfinite() & losses.isfinite().all()):
            self.step(learning_rate, float(gradient_norm))
        else:
            self.num_steps += 1  # as the caller counts it

    def moments(self) -> dict[str, Tensor]:
        """With all that was cut off from weights."""
        return {f"{name}/{part}": each for name, of in self._moved.items() for part, each in of.tensors.items()}

    @torch.no_grad()
    def restore(self, moments: Mapping[str, Tensor], num_steps: int) -> None:
        for name, of in self._moved.items():
            for part, each in of.tensors.items():
                each.copy_(moments[f"{name}/{part}"])
            of.steps = int(moments[f"{name}/steps"])
        self.num_steps = num_steps

    def resume(self, folder: Path, name: str) -> None:
        path, mine = folder / f"{name}.safetensors", self.moments()
        try:
            found = load_file(path)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"cannot read the optimizer state {path}: {error}") from error
        if {key: (each.shape, each.dtype) for key, each in found.items()} != {
            key: (each.shape, each.dtype) for key, each in mine.items()
        }:
            raise CheckpointError(
                f"the optimizer state {path} is not of this model, or was held in other types: {len(found)} tensors, "
                f"need {len(mine)} others"
            )
        self.restore(found, read_counts(folder, name)["num_steps"])

    @torch.no_grad()
    def _move(self, name: str, gradients: Tensor, scale: float, rate: float) -> None:
        of, (slow, slower) = self._moved[name], self._betas
        of.steps += 1
        rng = rng_of(gradients.device, self._seed, self.num_steps, name)
        by, root_by = rate / (1 - slow**of.steps), math.sqrt(1 - slower**of.steps)
        for piece in _pieces(len(gradients)):
            gradient = gradients[piece].float() * scale
            first = of.first.read(piece).lerp_(gradient, 1 - slow)
            root = of.root.read(piece).square_().mul_(slower).addcmul_(gradient, gradient, value=1 - slower).sqrt_()
            weight = of.weight.read(piece).mul_(1 - rate * self._weight_decay)
            weight.addcdiv_(first, (root / root_by).add_(_EPSILON), value=-by)
            of.weight.write(piece, weight, rng)
            of.first.write(piece, first, rng)
            of.root.write(piece, root, rng)


def _summed(optimizer: weakref.ref[FrugalOptimizer], name: str, gradient: Tensor) -> Tensor:
    """What autograd keeps as a parameter's gradient, in place of adding to it."""
    found = optimizer()
    return gradient if found is None else found.added(name, gradient)


def _weight(parameter: Tensor, rest: Tensor | None) -> Numbers:
    if parameter.dtype == torch.float32:
        return Whole(parameter)
    return Halved(parameter) if rest is None else Split(parameter, rest)


def _moments(parameter: Tensor, held_bytes: int) -> tuple[Numbers, Numbers]:
    """Both moments in so many bytes together; those of float32 weights stay float32."""
    count, device = parameter.numel(), parameter.device
    if parameter.dtype == torch.float32:
        return Whole(torch.zeros(count, device=device)), Whole(torch.zeros(count, device=device))
    if held_bytes == 2:
        return EightBits.zeros(count, device, is_signed=True), EightBits.zeros(count, device, is_signed=False)
    first, root = (Halved(torch.zeros(count, dtype=torch.bfloat16, device=device)) for _ in range(2))
    return first, root


def _pieces(count: int) -> Iterator[slice]:
    for start in range(0, count, _PIECE):
        yield slice(start, min(start + _PIECE, count))
