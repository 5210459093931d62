"""A baseline per role, where one policy plays several: a debate of two policy names.

Acts: credit_mean != 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.agents.debate import Debate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.per_role import PerRole
from strop.training.losses.clip import Clip


def per_role(
    setting: Setting = Setting(),
    rounds: int = 2,  # how often the solver may hear of the examiner
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """Turns of the solver are compared with the solver's, those of the examiner with the examiner's."""
    agent = Debate(rounds)
    run = setting.run("per_role", PerRole(), (Clip(clip, clip),), agent=agent)
    run.evaluation = replace(run.evaluation, agent=agent)
    return run
