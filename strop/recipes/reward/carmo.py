"""Pairs by criteria that a judge names for each task before it scores the completions, then DPO.

Title: CARMO: Dynamic Criteria Generation for Context-Aware Reward Modelling
Paper: arXiv 2410.21545 (2024)
Claim: 2.1 % more on Reward Bench than judges with fixed criteria; with preferences made so, Mistral-Base of 7B wins
    22.5 % (length controlled).
Reading: Only the abstract was found. The score is the mean over criteria from 0 to 100; criteria are made from the task
    alone, once for all its rollouts. Pairs are the best and the worst of a group and made anew each step, where the
    paper has a fixed set. Rules stand for the judge (`judge=http://...#MODEL` asks one). What the environment would
    have paid is logged beside it and weighs nothing.
Left out: A smaller model that learns to name criteria and to score from what the judge said.
Acts: reward/context_criteria > 0 and fact/criteria > 0 and margin != 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.judges.batch_ask import all_of
from strop.filter.judges.checklist_items import FACT
from strop.filter.judges.criteria import criteria_of, scores_of
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import Group, Rollout

# CARMO's score (2410.21545): a judge names the criteria that fit this task, then scores each completion by all of them.
#
# Only an abstract was found; read plainly, the score is the mean over criteria on one scale. Criteria come from the
# task alone, so that all its completions are measured alike.


@dataclass(frozen=True)
class ContextCriteria(Reward):
    """The mean of a completion's scores, from 0 to 1; where there are no criteria or not all scores, there is no
    reward.
    """

    task_generator: LLMClient  # who names criteria
    judge: LLMClient  # who scores completions by them
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # awaits its LLM clients

    async def __call__(self, group: Group) -> list[float]:
        if not group.rollouts:
            return []
        criteria = await criteria_of(group.task, self.task_generator)
        return await all_of(self._score(rollout, criteria) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout, criteria: list[str]) -> float:
        scores = await scores_of(rollout, criteria, self.judge)
        rollout.facts |= {f"{FACT}{place}": score for place, score in enumerate(scores)}
        rollout.facts["criteria"] = float(len(criteria))
        return sum(scores) / len(scores)


_RULES = "strop.standins.judges.criteria"


def carmo(
    setting: Setting = Setting(),
    judge: str = "rules",  # who names criteria and scores: rules, itself, a model's folder, or http://HOST/v1#MODEL
    beta: float = 0.1,  # DPO's beta: scale of the implicit reward log(policy / reference)
) -> Run:
    """No fixed rubric: what counts is named for each task, then scored."""
    gates = (BestAndWorst(),)
    run = setting.run("carmo", Constant(), (Dpo(beta),), gates=gates, reduction=SequenceMean())
    truth = measured(run.envs)
    task_generator, scorer = (parse_judge(judge, f"{_RULES}:{name}") for name in ("criteria", "scored"))
    run.rewards, run.reward_seconds = (ContextCriteria(task_generator, scorer), truth), judge_seconds(judge)
    return run
