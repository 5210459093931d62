"""Pairs by criteria that a judge names for each task before it scores the replies, then DPO.

Title: CARMO: Dynamic Criteria Generation for Context-Aware Reward Modelling
Paper: arXiv 2410.21545 (2024)
Claim: 2.1 % more on Reward Bench than judges with fixed criteria; with preferences made so, Mistral-Base of 7B wins
    22.5 % (length controlled).
Reading: Only the abstract was found. The score is the mean over criteria from 0 to 100; criteria are made from the task
    alone, once for all its attempts. Pairs are the best and the worst of a group and made anew each step, where the
    paper has a fixed set. Rules stand for the judge (`judge=http://...#MODEL` asks one). What the world would have paid
    is logged beside it and weighs nothing.
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
from strop.roles import Adviser, Reward
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import Group, Trajectory

# CARMO's score (2410.21545): a judge names the criteria that fit this task, then scores each reply by all of them.
#
# Only an abstract was found; read plainly, the score is the mean over criteria on one scale. Criteria come from the
# task alone, so that all its replies are measured alike.


@dataclass(frozen=True)
class ContextCriteria(Reward):
    """The mean of a reply's scores, from 0 to 1; where there are no criteria or not all scores, there is no reward."""

    writer: Adviser  # who names criteria
    judge: Adviser  # who scores replies by them
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its advisers do the work

    async def __call__(self, group: Group) -> list[float]:
        if not group.trajectories:
            return []
        criteria = await criteria_of(group.task, self.writer)
        return await all_of(self._mark(attempt, criteria) for attempt in group.trajectories)

    async def _mark(self, attempt: Trajectory, criteria: list[str]) -> float:
        scores = await scores_of(attempt, criteria, self.judge)
        attempt.facts |= {f"{FACT}{place}": score for place, score in enumerate(scores)}
        attempt.facts["criteria"] = float(len(criteria))
        return sum(scores) / len(scores)


_RULES = "strop.standins.judges.criteria"


def carmo(
    setting: Setting = Setting(),
    judge: str = "rules",  # who names criteria and scores: rules, itself, a model's folder, or http://HOST/v1#MODEL
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """No fixed rubric: what counts is named for each task, then scored."""
    gates = (BestAndWorst(),)
    run = setting.run("carmo", Constant(), (Dpo(beta),), gates=gates, reduction=SequenceMean())
    truth = measured(run.worlds)
    writer, scorer = (parse_judge(judge, f"{_RULES}:{name}") for name in ("criteria", "scored"))
    run.rewards, run.reward_seconds = (ContextCriteria(writer, scorer), truth), judge_seconds(judge)
    return run
