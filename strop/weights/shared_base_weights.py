"""Frozen base weights, read in place by a trainer of adapters and by its engine: one copy in memory.

A version is then the adapters alone; its fingerprint combines that of the base weights, at the time of sharing, and
that of the adapters.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from strop.models.layers.adapters import is_adapter, is_packed
from strop.models.model import unadapted
from strop.weights.fingerprint import fingerprint


class Loan(Protocol):
    """Shared base weights, as a channel knows them."""

    @property
    def adapters(self) -> dict[str, Tensor]: ...
    def published(self, adapters: Mapping[str, Tensor]) -> str: ...


@dataclass(eq=False)
class Shared(Loan):
    """Model with its owner's adapters; readers of its base weights have adapters of their own."""

    model: Any
    name: str = field(init=False)  # the fingerprint of its weights when they were shared
    _now: tuple[list[int], str] = field(init=False, repr=False)  # what torch counted when they were last looked at

    def __post_init__(self) -> None:
        self.name = fingerprint(self.weights)
        self._now = self._counts(), self.name

    @property
    def weights(self) -> dict[str, Tensor]:
        return unadapted(self.model)

    @property
    def adapters(self) -> dict[str, Tensor]:
        """The owner's, by name."""
        return {name: each.detach() for name, each in self.model.named_parameters() if is_adapter(name)}

    @property
    def rank(self) -> int:
        return min(next(iter(self.adapters.values())).shape)

    @property
    def is_packed(self) -> bool:
        """Whether weights are held in four bits."""
        return any(is_packed(module) for module in self.model.modules())

    def another(self) -> Any:
        """A model over the same weights, with adapters of its own that begin as these are now."""
        shared = {id(each): each for name, each in self.model.named_parameters() if not is_adapter(name)}
        return copy.deepcopy(self.model, shared)

    def published(self, adapters: Mapping[str, Tensor]) -> str:
        """The name of a version: of the weights as they were shared, and of these adapters."""
        return _joined(self.name, adapters)

    def held(self, adapters: Mapping[str, Tensor]) -> str:
        """The name of what is sampled from: of the weights as they are now, and of these adapters.

        They are looked at again whenever torch has counted a write to one of them.
        """
        if (counts := self._counts()) != self._now[0]:
            self._now = counts, fingerprint(self.weights)
        return _joined(self._now[1], adapters)

    def _counts(self) -> list[int]:
        return [count for each in self.weights.values() for count in (each.data_ptr(), each._version)]


def readable(shared: Loan | None, device: str, dtype: torch.dtype) -> Shared | None:
    """What is shared, where its weights lie on this device and in this type."""
    if not isinstance(shared, Shared):
        return None
    weight = shared.model.get_input_embeddings().weight
    return shared if weight.device == torch.empty(0, device=device).device and weight.dtype == dtype else None


def _joined(name: str, adapters: Mapping[str, Tensor]) -> str:
    return hashlib.sha256(f"{name}|{fingerprint(adapters)}".encode()).hexdigest()[:32]
