"""Batch of a masked diffusion model: several forward passes per completion, in which every token is scored where it is
masked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.errors import ConfigurationError
from strop.kernels.attention import moved
from strop.models.layers.attention import Packed
from strop.models.model import hidden_states
from strop.models.tokens.mask_token import mask_token, refuse_masks
from strop.roles import View
from strop.training.batch import AS_SAMPLED, Batch
from strop.training.canvases import Glance, WrittenCanvas, canvases
from strop.training.machine.llama import LlamaForward


@dataclass(eq=False)
class Reading:
    """Masking of completions in forward passes."""

    view: View
    mask: int  # the token that hides another
    seed: int
    places: int = 0  # of the largest canvas so far, behind its prompt

    def glances(self, batch: Batch, canvas: WrittenCanvas) -> list[Glance]:
        return as_sampled(canvas) if batch.view == AS_SAMPLED else self.view(canvas)


def reading_of(view: View | None, folder: Path, seed: int) -> Reading | None:
    """How a trainer with this view reads, beginning with the model in this folder; None: from left to right."""
    if view is not None:
        return Reading(view, mask_token(folder), seed)
    refuse_masks(folder)
    return None


def as_sampled(canvas: WrittenCanvas, merged: int = 1) -> list[Glance]:
    """One glance for each step, or for so many in a row: of it and all later ones nothing is seen."""
    is_completion = canvas.is_completion
    steps = np.unique(canvas.order[is_completion])
    glances = []
    for first in range(0, len(steps), merged):
        begin, last = steps[first], steps[min(first + merged, len(steps)) - 1]
        hidden = (canvas.order >= begin) & (np.arange(len(is_completion)) >= canvas.start)
        glances.append(Glance(hidden, is_completion & hidden & (canvas.order <= last)))
    return glances


class Viewed:
    """`Sequences` of masked views; equal views are computed once."""

    def __init__(self, batch: Batch, reading: Reading, device: str) -> None:
        found = np.zeros(len(batch.tokens), dtype=np.int64)  # [T], among the computed
        weights = np.zeros(len(batch.tokens), dtype=np.float32)  # [T]
        shown: dict[bytes, tuple[int, NDArray[np.int64]]] = {}
        size = 0
        for first, canvas in canvases(batch, reading.seed):
            reading.places = max(reading.places, len(canvas.tokens) - canvas.start)
            for glance in reading.glances(batch, canvas):
                seen = np.where(glance.hidden, reading.mask, canvas.tokens)
                if (name := seen.tobytes()) not in shown:
                    shown[name] = (size, seen)
                    size += len(seen)
                places = np.flatnonzero(glance.judged)
                found[first + places - canvas.start] = shown[name][0] + places
                weights[first + places - canvas.start] += glance.weight
        rows = [seen for _, seen in shown.values()] or [np.array([reading.mask])]  # a pass needs something to read
        lengths = np.array([len(seen) for seen in rows], dtype=np.int64)
        self._tokens = moved(torch.from_numpy(np.concatenate(rows)), device)
        positions = np.concatenate([np.arange(length) for length in lengths])
        self._positions = moved(torch.from_numpy(positions), device)
        self._plan = Packed(lengths, device, is_mutual=True)
        self._found = moved(torch.from_numpy(found), device)
        self.weights: Tensor | None = moved(torch.from_numpy(weights), device)
        self._is_whole = bool((weights[batch.trainable.cpu().numpy()] == 1).all())

    @property
    def num_computed(self) -> int:
        return len(self._tokens)

    def before(self, rows: Tensor) -> Tensor:
        """Where the states lie in which these tokens were chosen: at their own places, while they were hidden: [R]."""
        return self._found.index_select(0, rows)

    def check(self, batch: Batch, where: Tensor | None = None) -> None:
        """Whether there are distributions to look at, of all tokens that are asked about."""
        if not self._is_whole:
            raise ConfigurationError(
                "a view that hides only some tokens of a completion has logprobs, and no distributions"
            )
        if where is not None and bool((where & ~batch.trainable).any()):
            raise ConfigurationError("a model that fills masks predicts nothing that it only read")

    def computed(self, model: Any, fast_path: LlamaForward | None = None) -> Tensor:
        """[U, hidden], each state once."""
        return hidden_states(model, self._tokens, self._positions, self._plan)

    @property
    def places(self) -> Tensor:
        raise ConfigurationError("a model that fills masks has no state of a token it wrote: take those before it")

    def computed_between(self, model: Any, others: Tensor, share: Tensor) -> Tensor:
        raise ConfigurationError("a model that fills masks does not read its own tokens again between others")
