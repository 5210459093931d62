"""NudgeRL (2605.15726): words before the question that change how the policy plays, against GRPO without any.

Over 100,000 tokens it was +0.014 (-0.014 to +0.043).
Papers: nudgerl
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.generate.strategies.independent import Independent
from strop.recipes.rollout.nudgerl import nudgerl
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean


def guessing(setting: Setting) -> Setting:
    return replace(setting, env="guess:4", heldout_tasks=256, heldout_every=2)


def treatment(setting: Setting) -> Run:
    """Half of the rollouts read `half` or `up` before the question; held-out tasks are read without."""
    return nudgerl(guessing(setting))


def control(setting: Setting) -> Run:
    """The same clipped loss, reduction and steps on plain rollouts, with GRPO's advantage."""
    run, plain = nudgerl(guessing(setting)), (Clip(0.2, 0.2),)
    return replace(run, strategy=Independent(), advantage=GroupStandard(), losses=plain, reduction=SequenceMean())


def negative(setting: Setting) -> Run:
    """A word that shows the worse of two ways, which the policy takes by itself most of the time."""
    return nudgerl(guessing(setting), words="up")


experiment = Experiment(
    key="nudgerl",
    claim="At equal generated tokens, rollouts that are nudged by two words lift held-out accuracy without a word "
    "sooner than GRPO does.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=60_000,
    metric="heldout_area",
)
