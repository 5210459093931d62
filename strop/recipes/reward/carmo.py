"""CARMO: DPO on best and worst completions, scored by criteria that a judge first names for each task.

Title: CARMO: Dynamic Criteria Generation for Context-Aware Reward Modelling
Paper: arXiv 2410.21545 (2024)
Claim: 2.1 % more on Reward Bench than judges with fixed criteria; with its preferences, Mistral-Base of 7B wins
    22.5 % (length controlled).
Reading: Only the abstract was found. The score is the mean over criteria, each from 0 to 100; criteria are written from
    the task alone, once for all its rollouts. Pairs are the best and the worst of a group, sampled anew each step; the
    paper has a fixed set. Rules stand in for the judge (`judge=http://...#MODEL` asks a model). The environment's own
    reward is logged with weight 0.
Left out: A smaller model distilled from the judge to name criteria and to score.
Acts: reward/context_criteria > 0 and fact/criteria > 0 and margin != 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.judges.batch_ask import all_of
from strop.filter.judges.checklist_items import FACT
from strop.filter.judges.criteria import SCORED, WANTED, criteria_of, scores_of
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_parts, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.judges.criteria import scored_by_criteria, written_criteria
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Dpo
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Rollout

# CARMO's score (2410.21545): a judge names the criteria that fit this task, then scores each completion by all of them.
#
# Criteria come from the task alone, so that all its completions are scored by the same ones.


@dataclass(frozen=True)
class ContextCriteria(Reward):
    """Mean of a completion's scores, from 0 to 1; no reward if criteria or a score are missing."""

    task_generator: LLMClient  # names criteria
    judge: LLMClient  # scores completions by them
    weight: float = 1.0
    prompt_criteria: str = WANTED  # how criteria are asked for, below the task
    prompt_scores: str = SCORED  # how scores are asked for, below task, completion and criteria

    is_inline: ClassVar[bool] = True  # awaits its LLM clients

    async def __call__(self, group: Group) -> list[float]:
        if not group.rollouts:
            return []
        criteria = await criteria_of(group.task, self.task_generator, self.prompt_criteria)
        return await all_of(self._score(rollout, criteria) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout, criteria: list[str]) -> float:
        scores = await scores_of(rollout, criteria, self.judge, self.prompt_scores)
        rollout.facts |= {f"{FACT}{place}": score for place, score in enumerate(scores)}
        rollout.facts["criteria"] = float(len(criteria))
        return sum(scores) / len(scores)


def carmo(
    setting: Setting = Setting(),
    judge: str = "rules",  # names criteria and scores (a named part)
    beta: float = 0.1,  # DPO's beta: scale of the implicit reward log(policy / reference)
) -> Run:
    """No fixed rubric: criteria are named for each task, then scored."""
    gates = (BestAndWorst(),)
    run = setting.run("carmo", Constant(), (Dpo(beta),), gates=gates, reduction=SequenceMean())
    truth = measured(run.envs)
    task_generator, scorer = named_parts("judge", judge, setting, written_criteria, scored_by_criteria)
    run.rewards, run.reward_seconds = (ContextCriteria(task_generator, scorer), truth), reward_seconds(judge)
    return run
