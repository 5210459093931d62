"""Masked diffusion model for effect experiments: the bundled model, fine-tuned to fill masks."""

from __future__ import annotations

from pathlib import Path

from strop.effects.prior_runs import earlier_model
from strop.recipes.diffusion import filling, taught_to_fill
from strop.recipes.setting import Setting
from strop.run import Run

ENV, PLACES, BLOCK = "arithmetic:2", 32, 8
_SHOWN = 200
_KEPT = Path("runs/fillers")


def filler(device: str) -> str:
    """Its folder, after 200 steps on masked demonstrations; made when it is first needed, and kept in runs/fillers."""

    def run() -> Run:
        setting = Setting(env=ENV, seed=1000, max_tokens=PLACES, device=device, checkpoint_every=_SHOWN)
        taught = taught_to_fill(setting, "filler", filling(setting, BLOCK, least=1), _SHOWN)
        assert taught is not None
        return taught

    return earlier_model(_KEPT / f"arithmetic2-{_SHOWN}", run)
