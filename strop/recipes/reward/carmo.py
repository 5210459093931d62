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

from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.rewards.judged.context_criteria import ContextCriteria
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean

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
