"""Supervised warm-up on demonstrations or recorded episodes."""

from __future__ import annotations

from dataclasses import replace

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood

_EXAMPLES = 64  # demonstrations per step, at most
_RATE = 5e-4  # learning rate; 20 such steps take passages from 1 to 90 % right


class BundledOnly(int):
    """Default number of warm-up steps for the bundled model on bundled environments; 0 elsewhere, unless asked for."""


class BundledShare(float):
    """Default share of a disturbance that bundled tasks need; 0 elsewhere, unless asked for."""


def share_for(setting: Setting, share: float) -> float:
    return 0.0 if isinstance(share, BundledShare) and not setting.is_bundled else float(share)


def shown(setting: Setting, recipe: str, steps: int, episodes: str = "") -> Run | None:
    """A warm-up run of `steps` supervised steps on the environments' demonstrations; None for 0 steps.

    A file of recorded `episodes` takes their place, for any model, at the run's own learning rate.
    """
    if not steps or (isinstance(steps, BundledOnly) and not setting.is_bundled and not episodes):
        return None
    taught = replace(setting, steps=int(steps), group_size=1, learning_rate=_RATE, heldout_every=0)
    if episodes:
        taught = replace(taught, env=recorded(episodes), learning_rate=setting.learning_rate, answer="auto", reward="")
    run = replace(taught, groups_per_step=1).run(recipe, Constant(), (Likelihood(),), agent=Demonstrate())
    finite = [size for env in run.envs if (size := env.num_tasks()) is not None]
    run.groups_per_step = min(_EXAMPLES, sum(finite)) if len(finite) == len(run.envs) else _EXAMPLES
    return run


def recorded(episodes: str) -> str:
    """The name of an environment that replays a file of recorded episodes."""
    return f"episodes:{episodes}"
