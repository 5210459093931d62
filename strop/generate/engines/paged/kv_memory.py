"""Memory sizing of the paged engine: number of KV pages, and prompts per prefill pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import named_dtype
from strop.generate.engines.paged.block_manager import pages_for
from strop.generate.engines.paged.device_state import Seat
from strop.generate.engines.paged.paged_llama import why_not
from strop.kernels.decode import PAGE, DecodeOperations, Plain
from strop.models.model import context_length
from strop.models.torch_setup import gpu_memory
from strop.types import IntArray

if TYPE_CHECKING:
    from strop.generate.engines.paged.paged_engine import PagedEngine

_LONGEST = 8192  # tokens of a context, where the model allows more and nobody asked for more


def operations_on(device: str, races: bool) -> DecodeOperations:
    """Kernels where there is a GPU for them."""
    if torch.device(device).type != "cuda":
        return Plain(races)
    from strop.kernels.triton.decode import Kernels

    return Kernels(races)


def num_pages(rows: int, cache_tokens: int, memory: float, device: str, page_bytes: int, context: int) -> int:
    """Pages of keys, for so many tokens or in this share of the device's memory."""
    most = rows * pages_for(context) + 1  # more could never be used
    if cache_tokens:
        return min(most, pages_for(cache_tokens) + 1)
    if torch.device(device).type != "cuda":
        return min(most, rows * pages_for(1024) + 1)
    return pages_in_memory(device, memory, page_bytes, most)


def context_of(engine: PagedEngine, model: Any) -> int:
    """Tokens of the longest context."""
    return engine.context or min(context_length(model), _LONGEST)


def bytes_of_keys(engine: PagedEngine, model: Any, total: int) -> int:
    """What keys will take of a GPU on which the process may have `total` bytes, of a model of which the shape counts.

    One that is no PagedLlama has a plain engine, whose keys come and go.
    """
    if why_not(model):
        return 0
    config, size = model.config, torch.empty(0, dtype=named_dtype(engine.dtype)).element_size()
    head_size = model.base_model.layers[0].self_attn.head_dim
    page_bytes = 2 * config.num_hidden_layers * config.num_key_value_heads * PAGE * head_size * size
    most = engine.rows * pages_for(context_of(engine, model)) + 1
    pages = pages_for(engine.cache_tokens) + 1 if engine.cache_tokens else int(engine.memory * total) // page_bytes
    return int(min(most, pages) * page_bytes)


def pages_in_memory(device: str, share: float, page_bytes: int, most: int) -> int:
    """Pages of keys in this share of the memory that the process may have of a GPU."""
    free, total = gpu_memory(device)
    pages = min(most, int(share * total) // page_bytes)
    if (room := pages * page_bytes) > free:
        raise ConfigurationError(
            f"the engine's keys would take {room / 2**30:.1f} GiB (at most {share:.0%} of what this process "
            f"may have of the device) and {free / 2**30:.1f} GiB are free: give it less memory, or free some"
        )
    return pages


def prefill_pieces(seats: Sequence[Seat], most: int) -> list[list[tuple[int, int, IntArray]]]:
    """What prompts lack, in order, cut so that one forward pass has no more than `most` tokens."""
    pieces: list[list[tuple[int, int, IntArray]]] = []
    room = 0
    for seat in seats:
        start, end = seat.start, len(seat.context) - 1
        while start < end:
            if room == 0:
                pieces.append([])
                room = most
            count = min(room, end - start)
            pieces[-1].append((seat.slot, start, seat.context[start : start + count]))
            start, room = start + count, room - count
    return pieces
