"""Shared parts of the recipes for masked diffusion models: engine, trainer, and a supervised warm-up."""

from __future__ import annotations

from dataclasses import replace

from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.engines.diffusion.diffusion_engine import DiffusionEngine
from strop.generate.strategies.independent import Independent
from strop.generate.strategies.padded_demonstrations import Padded
from strop.recipes.setting import Setting
from strop.roles import View
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.corrections.importance_weights import Clamped
from strop.training.losses.likelihood import Likelihood
from strop.training.trainers.torch import TorchTrainer
from strop.training.views.diffusion_views import Corrupted

ALL_ALIKE = Clamped(
    1.0, 1.0, target="proximal"
)  # weight 1 for every token: ratios start at the weights before the step
_EXAMPLES = 64  # demonstrations per step
_RATE = 1e-3  # learning rate; 200 such steps take arithmetic:2 from 0 to about 50 % right answers
_RISE = 20  # steps of learning rate warm-up


def filling(setting: Setting, block: int, least: int, sure: float = 1.0) -> DiffusionEngine:
    return DiffusionEngine(block=block, least=least, sure=sure, device=setting.device)


def reading(setting: Setting, view: View, clip_norm: float = 1.0) -> TorchTrainer:
    return TorchTrainer(
        learning_rate=setting.learning_rate, device=setting.device, view=view, clip_norm=clip_norm, dtype="float32"
    )


def taught_to_fill(setting: Setting, recipe: str, engine: DiffusionEngine, steps: int) -> Run | None:
    """A supervised warm-up run of `steps` steps on partly masked demonstrations; None for 0 steps.

    It turns a causal model into a masked diffusion model.
    """
    if not steps:
        return None
    taught = replace(
        setting, steps=steps, group_size=1, groups_per_step=_EXAMPLES, learning_rate=_RATE, heldout_every=0
    )
    trainer = replace(reading(taught, Corrupted()), warmup_steps=_RISE, betas=(0.9, 0.98))
    return taught.run(
        recipe,
        Constant(),
        (Likelihood(),),
        agent=Demonstrate(),
        strategy=Padded(Independent(), setting.max_tokens),
        engine=engine,
        trainer=trainer,
    )
