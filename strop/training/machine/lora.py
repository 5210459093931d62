"""LoRA adapters as the trained weights (Hu et al., 2106.09685).

Adapters are float32; the base weights are in the compute dtype where the fast path reads them, else float32 too. All
other parts see merged weights: `strop.models.model.parameters` adds each adapter to its base weight.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.pytorch_utils import Conv1D  # GPT-2's linear layers: their weights lie the other way round

from strop.errors import CheckpointError, ConfigurationError
from strop.models.layers.adapters import Adapted, is_adapter
from strop.models.layers.decoder_part import decoder_of, has_tower, named_decoder_modules
from strop.models.layers.four_bit_linear import quantise
from strop.models.model import each_parameter, load_model
from strop.training.machine.forward import Forward

FOLDER = "adapter"  # within a checkpoint, in peft's own format
# times the learning rate of whole weights: what adapters need over many models and tasks (Schulman et al. 2025)
RATE = 10
_ALPHA = 2.0  # times the rank, over the rank: how strongly an adapter counts
_PREFIX = "base_model.model."  # of names in peft's files


def open_adapted(source: Path, rank: int, seed: int, forward: Forward, base: str = "plain") -> Any:
    """A model that learns by adapters alone, beside weights that are held plain or in four bits (nf4)."""
    if base == "nf4":
        model = load_model(source, forward.computes_in, forward.device, quantise)
        add_adapters(model, rank, seed)
        if forward.fast_path(model) is None:
            raise ConfigurationError(
                f'base="nf4" needs the kernels of the fast path, which {type(model).__name__} has none of or '
                f'fused="{forward.fused}" switched off: use base="plain"'
            )
        return model
    if forward.wants_fast and forward.computes_in != torch.float32:
        model = load_model(source, forward.computes_in, forward.device)
        add_adapters(model, rank, seed)
        if forward.fast_path(model) is not None:
            return model
        del model  # or two would be in memory
    model = load_model(source, device=forward.device)
    add_adapters(model, rank, seed)
    return model


def add_adapters(model: Any, rank: int, seed: int) -> None:
    """Beside every linear layer but the output one; nothing else learns from here on.

    Experts lie in one tensor, which is no linear layer: beside them there are none, they stay as they are.
    """
    model.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name in _linear(model):
            owner, _, last = name.rpartition(".")
            setattr(model.get_submodule(owner), last, Adapted(model.get_submodule(name), rank, _ALPHA))


def count_of(model: Any, rank: int) -> int:
    """Numbers in all adapters of this rank, of a model that has none yet."""
    return sum(rank * sum(model.get_submodule(name).weight.shape) for name in _linear(model))


def learning(model: Any) -> dict[str, Tensor]:
    """The parameters an optimizer moves."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def save_adapters(model: Any, rank: int, source: Path, folder: Path) -> None:
    """Whole weights, and adapters as peft would: what reads those can put them on the model training began with."""
    stored, buffers = model.state_dict(), dict(model.named_buffers())
    whole = {name: stored[name].cpu() for name in buffers if name in stored}  # what no gradient reaches, too
    whole |= {name: tensor.cpu() for name, tensor in each_parameter(model)}
    model.save_pretrained(folder, state_dict=whole)
    into = folder / FOLDER
    into.mkdir(exist_ok=True)
    found = {_PREFIX + name.replace(".default.", "."): tensor.cpu() for name, tensor in learning(model).items()}
    save_file(
        {name: tensor.detach().contiguous() for name, tensor in found.items()}, into / "adapter_model.safetensors"
    )
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": str(source)}
    config |= _settings(model, rank)
    (into / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")


@torch.no_grad()
def load_adapters(model: Any, folder: Path) -> None:
    """Read what `save_adapters` wrote."""
    path = folder / FOLDER / "adapter_model.safetensors"
    try:
        found = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read the adapters {path}: {error}") from error
    mine = {_PREFIX + name.replace(".default.", "."): tensor for name, tensor in learning(model).items()}
    theirs, ours = ({name: tuple(each.shape) for name, each in side.items()} for side in (found, mine))
    if theirs != ours:
        name = min({*theirs.items()} ^ {*ours.items()})[0]
        raise CheckpointError(
            f"the adapters {path} are not of this model: {len(theirs)} tensors, need {len(ours)}; {name} is "
            f"{theirs.get(name, 'not there')}, need {ours.get(name, 'none')}"
        )
    for name, tensor in mine.items():
        tensor.copy_(found[name])


def _settings(model: Any, rank: int) -> dict[str, Any]:
    """What peft is told, here and by whoever reads the adapters."""
    return {
        "r": rank,
        "lora_alpha": int(_ALPHA * rank),
        "target_modules": _targets(model),
        "fan_in_fan_out": any(isinstance(each, Conv1D) for each in model.modules()),
        "lora_dropout": 0.0,
        "bias": "none",
    }


def _targets(model: Any) -> list[str] | str:
    """Last names of layers; beside a tower, which may use the same ones, an expression that only the decoder fits."""
    last = sorted({name.rpartition(".")[2] for name in _linear(model)})
    if not has_tower(model.config):
        return last
    decoder = next(name for name, each in model.named_modules() if each is decoder_of(model))
    return rf"{re.escape(decoder)}\..*\.({'|'.join(last)})"


def _linear(model: Any) -> list[str]:
    """Names of all linear layers but the output one."""
    head, kinds = model.get_output_embeddings(), (torch.nn.Linear, Conv1D)
    names = [name for name, each in named_decoder_modules(model) if isinstance(each, kinds) and each is not head]
    return [name.removesuffix(".base_layer") for name in names if not is_adapter(name)]
