"""Pairs by a checklist that an adviser writes for each task and judges item by item, then DPO.

Title: Checklists Are Better Than Reward Models For Aligning Language Models
Paper: arXiv 2507.18624 (2025)
Claim: 4 points on FollowBench, 6 on InFoBench and 3 on Arena-Hard, where reward models do not help everywhere.
Reading: Rules stand for the adviser (`judge=http://...#MODEL samples=25` asks one); they know no answers and say always
    the same, so one sample is enough where the paper takes 25. Of the paper's two kinds of verifier, judge and program,
    the programs are rules of ours for two items (calculations hold, the answer is the last result), each averaged with
    the judge as the release averages its programs; a model's checklist is judged alone. Pairs are the best and the
    worst of a group and made anew each step, where the paper has a fixed set; each draw is trained on twice, as its set
    is. Of the pairs those 40 % stay that differ most on one item. An answer without a number is no score. What the
    world would have paid is logged beside it and weighs nothing.
Left out: Programs that a model writes to verify items of its checklist: none is asked for or run.
Acts: reward/checklist > 0 and kept_share < 1 and margin != 0
"""

from __future__ import annotations

from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.widest_gap import WidestGap
from strop.filter.rewards.checklist import Checklist
from strop.generate.llm_clients.procedural import Procedural
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean

_RULES = "strop.standins.judges.checklist"


def rlcf(
    setting: Setting = Setting(),
    judge: str = "rules",  # who writes and judges: rules, itself, a model's folder, or http://HOST/v1#MODEL
    samples: int = 1,  # answers of the judge to each question; 25 of a language model
    share: float = 0.4,  # of the pairs, those that differ most on one item
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """No reward model and no answers: what a reply must do is written down first."""
    gates = (BestAndWorst(), WidestGap(share))
    run = setting.run("rlcf", Constant(), (Dpo(beta),), gates=gates, reduction=SequenceMean(), epochs=2)
    writer, scorer = (parse_judge(judge, f"{_RULES}:{name}") for name in ("written", "judged"))
    verifier = Procedural(f"{_RULES}:verified") if judge == "rules" else None  # it knows its own items alone
    truth = measured(run.worlds)
    run.rewards, run.reward_seconds = (Checklist(writer, scorer, verifier, samples), truth), judge_seconds(judge)
    return run
