"""UFO (2507.14295): training with `wrong, try again`, against training on first answers, by what five tries solve.

Over 200,000 tokens it was +0.071 (+0.033 to +0.109) against first answers, and +0.021 (-0.022 to +0.063) against
conversations of which only the first answer is paid.
Papers: ufo
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.generate.agents.chat import Chat
from strop.recipes.agent.ufo.recipe import ufo
from strop.recipes.setting import Setting
from strop.run import Run


def numbers(setting: Setting, every: int = 8) -> Setting:
    sizes = {"groups_per_step": 4, "heldout_tasks": 256, "heldout_every": every}
    return replace(setting, env="countdown:4", learning_rate=1e-4, **sizes)


def treatment(setting: Setting) -> Run:
    """Rollouts of up to five tries, the later ones worth less, repeated answers at a price."""
    return ufo(numbers(setting))


def control(setting: Setting) -> Run:
    """First answers alone; at equal tokens these are more rollouts and steps. Measured with five tries all the same."""
    return replace(ufo(numbers(setting, every=24)), agent=Chat(max_turns=1))


def negative(setting: Setting) -> Run:
    """The same conversations, in which only the first answer is paid and repetition is free."""
    return ufo(numbers(setting), decay=0.0, price=0.0)


experiment = Experiment(
    key="ufo",
    claim="At equal sampled tokens, training over several tries solves more held-out tasks within five tries, over the "
    "run, than training on first answers, or than several tries of which only the first is paid.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=400_000,
    metric="heldout_area",
)
