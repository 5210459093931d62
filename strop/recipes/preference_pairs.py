"""Runs on preferences: pairs of the policy's own rollouts or of a table, and comparisons that train reward models."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from strop.control.budgets.fixed import Fixed
from strop.control.samplers.uniform import Uniform
from strop.environments.judging.preferences import Preferences
from strop.evaluation import Evaluation
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.rewards.from_environment import Earned
from strop.generate.agents.judge import JudgeShown
from strop.generate.strategies.preference_pairs_from_data import RecitedPair
from strop.generate.strategies.verdict_data import RecitedVerdicts
from strop.recipes.environment_specs import judged_by
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.reductions.means import SequenceMean

Pairs: TypeAlias = Literal["sampled", "given"]


def pairing(pairs: Pairs) -> dict[str, Any]:
    """The parts of a `Run` that learns from pairs, with any pairwise loss."""
    if pairs == "sampled":
        return {"gates": (BestAndWorst(),), "reduction": SequenceMean()}
    from_table = {"strategy": RecitedPair(), "budget": Fixed(2), "rewards": (Earned(),)}
    return from_table | {"gates": (BestAndWorst(),), "reduction": SequenceMean()}


def preferring(setting: Setting, recipe: str, losses: tuple[Loss, ...], **fields: Any) -> Run:
    """A run on verdicts from data, without sampling; `fields` are those of `Preferences`."""
    run = setting.run(recipe, Constant(), losses, strategy=RecitedVerdicts(), reduction=SequenceMean())
    run.envs = tuple(Preferences(env, **fields) for env in run.envs)
    run.sampler = Uniform(run.envs)
    run.rewards = (judged_by(run.envs),)
    run.evaluation = Evaluation(setting.heldout_every, setting.heldout_tasks, agent=JudgeShown(), rewards=run.rewards)
    return run
