"""Proof of weight delivery: the fingerprint of what an engine really holds, compared with the published one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from strop.backends import WeightVersion
from strop.capabilities import Borrows, Lends, Multiplies, Typed, inside, outermost
from strop.errors import ConfigurationError, DeliveryError
from strop.models.layers.eight_bit_linear import encoded, is_code
from strop.roles import Engine, Trainer
from strop.weights.shared_base_weights import Loan


async def deliver(version: WeightVersion, engines: Sequence[Engine]) -> None:
    """Let every engine load a version; one that answers with other weights stops the run."""
    answers = await asyncio.gather(*(engine.load(version) for engine in engines))
    for number, (engine, answer) in enumerate(zip(engines, answers, strict=True)):
        check(version, answer, f"engine {number} ({type(engine).__name__})")


def check(version: WeightVersion, answer: str, name: str) -> None:
    """Raise unless the answer is the fingerprint of this version."""
    if answer != version.fingerprint:
        raise DeliveryError(
            f"{name} samples from weights {answer} after step {version.step}, "
            f"whose published weights are {version.fingerprint}"
        )


def shared_by(trainer: Trainer) -> Loan | None:
    """Weights that may be read in place, where one trainer alone has them."""
    lenders = outermost(trainer, Lends)
    return lenders[0][1].lend() if len(lenders) == 1 else None


def shared_to(trainer: Trainer, engines: Sequence[Engine]) -> Loan | None:
    """What a trainer lends to its only engine; None where that holds weights of its own."""
    readers = outermost(list(engines), Borrows)
    shared = shared_by(trainer) if len(readers) == 1 else None
    return shared if shared is not None and readers[0][1].borrow(shared) else None


@torch.no_grad()
def as_held(weights: Mapping[str, Tensor], engines: Sequence[Engine]) -> dict[str, Tensor]:
    """Weights as the engines say they hold them: a version is named by what is sampled from."""
    if any(part.matmul_precision == "fp8" for part in inside(list(engines), Multiplies)):
        weights = encoded(weights)
    names = {part.dtype for part in inside(list(engines), Typed)}
    if len(names) > 1:
        raise ConfigurationError(
            f"engines that share weights must hold them in one type, got {', '.join(sorted(names))}"
        )
    if not names:
        return dict(weights)
    dtype: torch.dtype = getattr(torch, names.pop())
    other = {name: tensor for name, tensor in weights.items() if tensor.dtype != dtype and not is_code(name)}
    rounded = {name: torch.empty_like(tensor, dtype=dtype) for name, tensor in other.items()}
    if other:
        torch._foreach_copy_(list(rounded.values()), list(other.values()))
    return {**weights, **rounded}
