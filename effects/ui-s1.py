"""UI-S1 (2509.11543): rollouts that are put back on the expert's path, against rollouts that end where they leave it.

Over 80,000 tokens it was +0.006 (-0.009 to +0.021), at the end 6.3% against 0.8%: all arms had only begun to learn.
Papers: ui-s1
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.agent.ui_s1 import ui_s1
from strop.recipes.setting import Setting
from strop.run import Run


def store(setting: Setting) -> Setting:
    return replace(setting, env="keyvalue:5", learning_rate=5e-5, heldout_tasks=256, heldout_every=4)


def treatment(setting: Setting) -> Run:
    """Two mismatches are mended."""
    return ui_s1(store(setting))


def control(setting: Setting) -> Run:
    """The first mismatch ends a rollout."""
    return ui_s1(store(setting), patches=0)


def negative(setting: Setting) -> Run:
    """Two mismatches do not end a rollout, and nobody mends them."""
    return ui_s1(store(setting), repairs=False)


experiment = Experiment(
    key="ui-s1",
    claim="At equal sampled tokens, rollouts that go on from a mended step have a higher mean held-out accuracy over "
    "the run than rollouts that end at the first mismatch, or that go on without being mended.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
    metric="heldout_area",
)
