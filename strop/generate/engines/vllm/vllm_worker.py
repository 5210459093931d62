"""Extension of vLLM's workers that loads new weights and reads back the weights in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from vllm.distributed import get_tp_group
from vllm.model_executor.layers.linear import MergedColumnParallelLinear, QKVParallelLinear
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

from strop.errors import DeliveryError
from strop.weights.fingerprint import fingerprint, fingerprint_in_turn
from strop.weights.mapped_memory import attach
from strop.weights.unfuse import unfused, whole


class ReadsBack:
    """Worker extension (`worker_extension_cls`), whose methods vLLM can call on every rank."""

    if TYPE_CHECKING:
        model_runner: Any
        reload_weights: Any

    def strop_take(self, weights: Mapping[str, Tensor]) -> None:
        """Tensors of this process, by the names of a checkpoint."""
        self.reload_weights(weights_iterator=iter(weights.items()))

    def strop_map(self, address: Mapping[str, Any]) -> None:
        """Tensors in shared memory: each rank cuts out its own part."""
        self.strop_take(attach(address))

    @torch.no_grad()
    def strop_held(self, shapes: Mapping[str, tuple[int, ...]]) -> str:
        """The fingerprint of what is held, on the first rank; what has no name, or another shape, is refused."""
        model, group = self.model_runner.get_model(), get_tp_group()
        held = {name: each.detach() for name, each in model.named_parameters()}
        shards = unfused(held, _heights(model), list(shapes))
        if group.world_size == 1:
            return fingerprint(dict(_whole(model, shards, shapes, lambda shard: [shard])))

        def gathered(shard: Tensor) -> list[Tensor]:
            return list(group.all_gather(shard.contiguous().unsqueeze(0), 0))

        found = _whole(model, shards, shapes, gathered)
        return fingerprint_in_turn(found) if group.rank_in_group == 0 else "".join("" for _ in found)


def _heights(model: Any) -> dict[str, list[int]]:
    """Rows of each part of every joined layer, on this rank."""
    joined = (QKVParallelLinear, MergedColumnParallelLinear)
    return {
        name: [height // layer.tp_size for height in layer.output_sizes]
        for name, layer in model.named_modules()
        if isinstance(layer, joined)
    }


def _whole(
    model: Any, shards: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], gathered: Any
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor by name, in order, as a checkpoint has it."""
    layers = model.named_modules(remove_duplicate=False)
    padded = {f"{name}.weight" for name, layer in layers if isinstance(layer, VocabParallelEmbedding)}
    for name in sorted(shapes):
        try:
            found = whole(gathered(shards[name]), shapes[name], name in padded)
        except DeliveryError as error:
            raise DeliveryError(f"{name}: {error}") from error
        if tuple(found.shape) != tuple(shapes[name]):
            raise DeliveryError(f"{name}: need shape {tuple(shapes[name])}, vLLM holds {tuple(found.shape)}")
        yield name, found
