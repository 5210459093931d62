"""Runs that train reward models on pairwise comparisons of completions in the setting's environments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from strop.control.samplers.uniform import Uniform
from strop.environments.judging.preferences import Preferences
from strop.generate.agents.judge import JudgeShown
from strop.generate.strategies.verdict_data import RecitedVerdicts
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.reductions.means import SequenceMean


def preferring(setting: Setting, recipe: str, losses: tuple[Loss, ...], **fields: Any) -> Run:
    """A run on verdicts from data, without sampling; `fields` are those of `Preferences`."""
    run = setting.run(recipe, Constant(), losses, strategy=RecitedVerdicts(), reduction=SequenceMean())
    run.envs = tuple(Preferences(env, **fields) for env in run.envs)
    run.sampler = Uniform(run.envs)
    run.evaluation = replace(run.evaluation, agent=JudgeShown())
    return run
