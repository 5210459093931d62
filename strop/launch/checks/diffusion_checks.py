"""Check that model, engine and trainer are all autoregressive, or all masked diffusion."""

from __future__ import annotations

from pathlib import Path

from strop.capabilities import inside
from strop.errors import ModelError
from strop.generate.engines.diffusion.diffusion_engine import DiffusionEngine
from strop.generate.engines.wrappers.chunked import InPieces
from strop.models.loading.model_names import model_folder
from strop.models.tokens.mask_token import fills_masks
from strop.roles import Engine, Loss, View
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.advantages.trace_returns import TraceReturns
from strop.training.corrections.importance_weights import Clamped
from strop.training.objective import Objective
from strop.training.requirements import folders
from strop.training.step_scales.effective_sample_size import EffectiveSampleSize
from strop.training.trainers.torch import TorchTrainer
from strop.training.views.diffusion_views import InOrder


def problems(run: Run) -> list[str]:
    """A completion that was filled in any order means nothing to whoever reads it from left to right, and the
    reverse.
    """
    engines = [each for each in inside(run.engine, Engine) if each.has_weights and len(inside(each, Engine)) == 1]
    filling = [isinstance(each, DiffusionEngine) for each in engines]
    reading = [each.view is not None for each in inside(run.trainer, TorchTrainer)]
    found: list[str] = []
    if engines and reading and set(filling) != set(reading):
        found.append(
            f"the engine {_does(filling)} and the trainer {_does(reading)}: DiffusionEngine and trainer.view belong "
            "together"
        )
    if not any(filling) and _begins_with_masks(run):
        found.append(f"the model {run.model} fills masks (mask_token_id in config.json): train it with d1 or tracerl")
    if any(filling) and run.sampling.stop:
        found.append("DiffusionEngine ends a completion with an end token alone, and sampling.stop names texts")
    if any(filling) and inside(run.engine, InPieces):
        found.append("the engine is asked for completions in pieces, and a canvas of masks is filled in one")
    if any(filling) and run.values is not None and not inside(run.values, View):
        found.append(f"{type(run.values).__name__} reads completions from left to right: take CanvasCritic")
    return found + (_ratios(run) + _teachers(run) + _steps(run) if any(filling) else [])


def _begins_with_masks(run: Run) -> bool:
    """Whether the model is here, and fills masks; one that is missing is told of by whoever opens it."""
    try:
        return fills_masks(model_folder(run.model))
    except ModelError:
        return False


def _ratios(run: Run) -> list[str]:
    """What a view estimates is not what a token was drawn with, and a ratio of the two says nothing."""
    views = inside(run.trainer, View)
    if all(isinstance(view, InOrder) and view.merged == 1 for view in views):
        return []
    parts = [type(loss).__name__ for loss in inside(run.losses, Loss) if loss.contains_ratio or loss.corrects]
    correction = run.correction
    is_constant = isinstance(correction, Clamped) and correction.low == correction.high
    parts += [type(correction).__name__] if correction is not None and not is_constant else []
    parts += [type(scale).__name__ for scale in inside(run.trainer, EffectiveSampleSize)]
    return [
        f"{part} compares with the logprobs tokens were drawn with, and {type(views[0]).__name__} estimates others: "
        "let ratios begin at the weights before the step (anchor='proximal', and Clamped(1, 1, target='proximal')), or "
        "take InOrder(1)"
        for part in parts
    ]


def _steps(run: Run) -> list[str]:
    """Advantage goes along the steps that a view shows, and not from each token to the one right of it."""
    found = ["Gae goes from each token to the next: take TraceReturns"] if inside(run.advantage, Gae) else []
    shown = {view.merged for view in inside(run.trainer, View) if isinstance(view, InOrder)}
    with_advantages = {each.merged for each in inside(run.advantage, TraceReturns)}
    if shown and with_advantages and shown != with_advantages:
        found.append(f"TraceReturns merges {min(with_advantages)} steps and InOrder {min(shown)}: set merged alike")
    return found


def _teachers(run: Run) -> list[str]:
    asked = {*folders(Objective(run.losses, run.correction).needs)}
    asked |= {each.reference for each in inside(run.trainer, TorchTrainer) if each.reference}
    return [
        f"the model in {folder} is asked about canvases of masks, and its config.json names no mask_token_id: it "
        "writes from left to right"
        for folder in sorted(asked)
        if not fills_masks(Path(folder))
    ]


def _does(filling: list[bool]) -> str:
    return "fills masks" if all(filling) else "writes from left to right" if not any(filling) else "does both"
