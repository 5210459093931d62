"""Models by name: `pocket`, a Hugging Face folder or id, or a run folder (its newest complete checkpoint)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from strop.capabilities import Keeps
from strop.errors import ModelError, nearest
from strop.generate.engines.diffusion.diffusion_engine import DiffusionEngine
from strop.generate.engines.select_engine import engine_on
from strop.generate.policy import Policy
from strop.models.layers.decoder_part import has_tower
from strop.models.loading.check_folder import check_model_folder, longest_sequence, read_config
from strop.models.loading.model_names import model_folder
from strop.models.tokens.mask_token import canvas_places, fills_masks
from strop.recipes.model_paths import chosen_model
from strop.storage.picture_store import PictureStore
from strop.types import Sampling

_CONTEXT = 8192


def find_model(name: str) -> Path:
    """Folder of a named model; for a run, its newest complete checkpoint."""
    path = model_folder(chosen_model(name))
    if not path.exists():
        others = ["pocket", *(p.name for p in path.parent.iterdir() if p.is_dir())] if path.parent.is_dir() else []
        raise ModelError(f"there is no model {name!r}: {nearest(path.name, others or ['pocket'])}")
    check_model_folder(path)
    return path


def open_policy(folder: Path, sampling: Sampling, device: str = "cpu") -> Policy:
    """Policy with the model loaded into an engine; context: the model's positions, at most 8,192."""
    engine = DiffusionEngine(device=device) if fills_masks(folder) else engine_on(device)
    store = PictureStore.temporary() if has_tower(read_config(folder)) else None
    if store is not None and isinstance(engine, Keeps):
        engine.keep_in(store.run)
    engine.open(folder)
    if places := canvas_places(folder):  # a diffusion model was not trained on larger canvases
        sampling = replace(sampling, max_tokens=min(sampling.max_tokens, places))
    context = min(longest_sequence(read_config(folder)) or _CONTEXT, _CONTEXT)
    return Policy.load(folder, engine, sampling, context, store)
