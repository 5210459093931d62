"""Sizes in config.json that the weights beside it do not have: refused before memory for them is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from strop.errors import ModelError

# each is as long as some side of a tensor, or one of the parts that such a side is made of
_SIDES = ("hidden_size", "vocab_size", "intermediate_size", "moe_intermediate_size", "num_attention_heads", "head_dim")
_COUNTS = ("num_hidden_layers", "num_experts", "num_local_experts", "n_routed_experts")


def check_sizes(folder: Path, config: Any) -> None:
    """Refuse a model of which config.json says far more than its files hold."""
    shapes = _shapes(folder)
    if not shapes:
        return
    longest, most = (
        max(max(shape, default=1) for shape in shapes),
        max(len(shapes), *(max(s, default=1) for s in shapes)),
    )
    text = config.get_text_config()
    for names, limit in ((_SIDES, longest), (_COUNTS, most)):
        for name in names:
            value = getattr(text, name, None)
            if isinstance(value, int) and not 0 <= value <= limit:
                raise ModelError(
                    f"{folder}/config.json says {name}={str(value)[:30]}, and its {len(shapes)} tensors have no side "
                    f"longer than {longest}: the configuration is of another model"
                )


def _shapes(folder: Path) -> list[list[int]]:
    found: list[list[int]] = []
    for file in sorted(folder.glob("model*.safetensors")):
        try:
            with safe_open(file, "np") as weights:
                found += [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118 (no mapping)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{file} cannot be read: {error}") from error
    return found
