"""Weights under the names of a checkpoint, read from a model that holds some of them fused or in shards.

Engines hold projections that read the same input as one matrix, stacked in the order of the table; with tensor
parallelism each rank holds a shard of every part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from strop.errors import DeliveryError

_JOINED = {
    "q_proj": ("qkv_proj", 0),
    "k_proj": ("qkv_proj", 1),
    "v_proj": ("qkv_proj", 2),
    "gate_proj": ("gate_up_proj", 0),
    "up_proj": ("gate_up_proj", 1),
}
_SHOWN = 3  # names of one kind


def unfused(
    held: Mapping[str, Tensor], heights: Mapping[str, Sequence[int]], names: Sequence[str]
) -> dict[str, Tensor]:
    """Views of what is held, by the wanted names; `heights` are the rows of each part, by the joined layer's name.

    Whatever is wanted and not held, or held and not wanted, is refused: a proof must cover all that is computed with.
    """
    found, used = {}, set()
    for name in names:
        if name in held:
            found[name] = held[name]
            used.add(name)
        elif (place := _place(name)) and place[0] in held and place[1] in heights:
            joined, layer, part = place
            begin = sum(heights[layer][:part])
            found[name] = held[joined][begin : begin + heights[layer][part]]
            used.add(joined)
    missing, unknown = sorted(set(names) - found.keys()), sorted(held.keys() - used)
    if missing or unknown:
        raise DeliveryError(
            f"the weights cannot be read back: {len(missing)} have no place that is known {missing[:_SHOWN]}, "
            f"{len(unknown)} belong to no name {unknown[:_SHOWN]}"
        )
    return found


def _place(name: str) -> tuple[str, str, int] | None:
    """The joined weight, its layer and the part of it that a name means."""
    path, _, kind = name.rpartition(".")
    parent, _, layer = path.rpartition(".")
    if layer not in _JOINED:
        return None
    joined, part = _JOINED[layer]
    return f"{parent}.{joined}.{kind}", f"{parent}.{joined}", part


def whole(shards: Sequence[Tensor], shape: Sequence[int], is_padded: bool = False) -> Tensor:
    """A tensor of this shape from the shards of all ranks; a vocabulary may be padded behind its last row.

    Ranks that must hold the same, as where there are fewer key heads than ranks, are compared.
    """
    first = shards[0]
    if is_padded:
        return torch.cat(list(shards))[: shape[0]]
    cuts = [place for place, (own, all_) in enumerate(zip(first.shape, shape, strict=True)) if own != all_]
    count = -(-shape[cuts[0]] // max(1, first.shape[cuts[0]])) if len(cuts) == 1 else 1  # of different shards
    replicas = len(shards) // count
    if len(cuts) > 1 or not replicas or (cuts and count * first.shape[cuts[0]] != shape[cuts[0]]):
        raise DeliveryError(f"{len(shards)} shards of shape {tuple(first.shape)} do not make {tuple(shape)}")
    # as bits, for a NaN is not its own equal
    bits = [each.contiguous().view(torch.uint8) for each in shards] if replicas > 1 else []
    if any(not torch.equal(each, bits[rank - rank % replicas]) for rank, each in enumerate(bits)):
        raise DeliveryError(f"{len(shards)} ranks hold different copies of what {replicas} of them must share")
    return torch.cat(list(shards[::replicas]), cuts[0]) if cuts else first
