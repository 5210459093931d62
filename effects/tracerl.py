"""TraceRL (2509.06949): tokens judged in the order they were filled in, against one estimate with all of them hidden.

All arms begin with one model: the bundled one after 200 steps on masked demonstrations, kept in runs/fillers. Advantage
is the group's in all of them, so that only what is read differs.
Papers: tracerl
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.effects.diffusion_model import ENV, PLACES, filler
from strop.filter.rewards.controls import Coin
from strop.recipes.diffusion import reading
from strop.recipes.objective.d1 import AllHidden
from strop.recipes.objective.tracerl import tracerl
from strop.recipes.setting import Setting
from strop.run import Run


def _setting(setting: Setting) -> Setting:
    sizes = {"max_tokens": PLACES, "heldout_tasks": 384, "learning_rate": 3e-5}
    return replace(setting, env=ENV, model=filler(setting.device), **sizes)


def treatment(setting: Setting) -> Run:
    """One glance for each step of filling."""
    return tracerl(_setting(setting), critic=False, shown=0)


def control(setting: Setting) -> Run:
    """One glance at each completion, with all of it hidden."""
    chosen = _setting(setting)
    return replace(tracerl(chosen, critic=False, shown=0), trainer=reading(chosen, AllHidden(0.0)))


def negative(setting: Setting) -> Run:
    """A coin decides which rollouts are right."""
    return replace(treatment(setting), rewards=(Coin(),))


experiment = Experiment(
    key="tracerl",
    claim="At equal generated tokens, judging tokens in the order they came in reaches a higher held-out accuracy than "
    "an estimate that hides the whole completion.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
)
