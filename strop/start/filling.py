"""Whether engine and trainer both go from left to right, or both fill masks, and the model with them."""

from __future__ import annotations

from strop.abilities import inside
from strop.generate.engines.diffusion import DiffusionEngine
from strop.generate.engines.in_pieces import InPieces
from strop.machines import Engine, View
from strop.models.masks import fills_masks
from strop.models.names import model_folder
from strop.run import Run
from strop.training.trainers.torch import TorchTrainer


def problems(run: Run) -> list[str]:
    """A reply that was filled in any order means nothing to whoever reads it from left to right, and the reverse."""
    engines = [each for each in inside(run.engine, Engine) if each.has_weights and len(inside(each, Engine)) == 1]
    filling = [isinstance(each, DiffusionEngine) for each in engines]
    reading = [each.view is not None for each in inside(run.trainer, TorchTrainer)]
    found: list[str] = []
    if engines and reading and set(filling) != set(reading):
        found.append(
            f"the engine {_does(filling)} and the trainer {_does(reading)}: DiffusionEngine and trainer.view belong "
            "together"
        )
    if not any(filling) and fills_masks(model_folder(run.model)):
        found.append(f"the model {run.model} fills masks (mask_token_id in config.json): train it with d1 or tracerl")
    if any(filling) and run.sampling.stop:
        found.append("DiffusionEngine ends a reply with an end token alone, and sampling.stop names texts")
    if any(filling) and inside(run.engine, InPieces):
        found.append("the engine is asked for replies in pieces, and a canvas of masks is filled in one")
    if any(filling) and run.values is not None and not inside(run.values, View):
        found.append(f"{type(run.values).__name__} reads replies from left to right: take CanvasCritic")
    return found


def _does(filling: list[bool]) -> str:
    return "fills masks" if all(filling) else "writes from left to right" if not any(filling) else "does both"
