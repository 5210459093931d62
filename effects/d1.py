"""d1 (2504.12216): other words of the prompt hidden in each of 12 steps on a batch, against none hidden in any.

All arms begin with one model, that of the effect of tracerl.
Papers: d1
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.effects.diffusion_model import ENV, PLACES, filler
from strop.filter.rewards.controls import Coin
from strop.recipes.objective.d1 import d1
from strop.recipes.setting import Setting
from strop.run import Run


def _run(setting: Setting, hidden: float) -> Run:
    sizes = {"max_tokens": PLACES, "heldout_tasks": 384, "learning_rate": 3e-5, "group_size": 6, "temperature": 0.9}
    chosen = replace(setting, env=ENV, model=filler(setting.device), **sizes)
    return d1(chosen, hidden=hidden, shown=0)


def treatment(setting: Setting) -> Run:
    """15 % of the prompt hidden, other words in every epoch."""
    return _run(setting, 0.15)


def control(setting: Setting) -> Run:
    """Twelve epochs with one and the same estimate."""
    return _run(setting, 0.0)


def negative(setting: Setting) -> Run:
    """A coin decides which rollouts are right."""
    return replace(treatment(setting), rewards=(Coin(),))


experiment = Experiment(
    key="d1",
    claim="At equal generated tokens and with 12 optimizer steps per batch, hiding other words of the prompt in each "
    "reaches a higher held-out accuracy than hiding none.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=40_000,
)
