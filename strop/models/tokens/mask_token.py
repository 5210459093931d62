"""Mask token of masked diffusion models, found in their vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from strop.errors import ModelError
from strop.models.loading.check_folder import read_json

_FIELD = "mask_token_id"  # of config.json, as models of masked diffusion have it
_PLACES = "canvas_places"  # of config.json, our own


def fills_masks(folder: Path) -> bool:
    """Whether the folder says so: such a model does not continue a text token by token."""
    return read_json(folder / "config.json").get(_FIELD) is not None


def refuse_masks(folder: Path) -> None:
    """For whoever goes from left to right: what such a model says then means nothing, and looks like text."""
    if fills_masks(folder):
        raise ModelError(
            f"{folder} fills masks ({_FIELD} in its config.json) and writes nothing from left to right: it needs "
            "DiffusionEngine and a trainer with a view, as `strop train d1` and `strop train tracerl` have them"
        )


def mask_token(folder: Path) -> int:
    """The mask that config.json or the tokenizer names; a model that has none yet takes its padding, which no text has.

    Padding that also ends completions would hide where they end, so it is refused.
    """
    if (named := read_json(folder / "config.json").get(_FIELD)) is not None:
        size = read_json(folder / "config.json").get("vocab_size")
        is_token = type(named) is int and named >= 0 and (type(size) is not int or named < size)
        if not is_token or named in _ends(folder):
            raise ModelError(f"{folder}: {_FIELD}={named!r} in config.json is no token that can stand for a mask")
        return int(named)
    tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    found = tokenizer.mask_token_id if tokenizer.mask_token_id is not None else tokenizer.pad_token_id
    if found is None or found in {tokenizer.eos_token_id, *_ends(folder)}:
        raise ModelError(
            f"{folder} has no token for a mask: {_FIELD} is not in config.json, the tokenizer names none, and its "
            f"padding {'ends completions too' if found is not None else 'is missing as well'}. Name an unused token "
            f"there"
        )
    return int(found)


def _ends(folder: Path) -> list[int]:
    """Every token that ends a completion, as the folder's configurations name them."""
    named = [read_json(folder / name).get("eos_token_id") for name in ("config.json", "generation_config.json")]
    lists = [each if isinstance(each, list) else [each] for each in named]
    return [token for tokens in lists for token in tokens if token is not None]


def canvas_places(folder: Path) -> int | None:
    """How many places the largest canvas had that the model learned from; None: nobody wrote that down."""
    found = read_json(folder / "config.json").get(_PLACES)
    return found if type(found) is int and found > 0 else None


def set_mask_token(model: Any, mask: int, places: int = 0) -> None:
    """Whoever reads the model's folder later will know that it fills masks, and canvases of which size it knows."""
    known = max(places, model.config.to_dict().get(_PLACES) or 0)
    model.config.update({_FIELD: mask} | ({_PLACES: known} if known else {}))
