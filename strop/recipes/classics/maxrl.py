"""MaxRL (2602.02710): credit divided by the success rate, so that the log of it is maximized."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.maximum_likelihood import MaximumLikelihood
from strop.train.losses.reinforce import Reinforce


def maxrl(setting: Setting = Setting()) -> Run:
    """Rare successes weigh most."""
    return setting.run("maxrl", MaximumLikelihood(), (Reinforce(),))
