"""GRPO on the share of siblings that an attempt beats, by criteria made from where two replies differ.

Title: Open Rubric System: Scaling Reinforcement Learning with Pairwise Adaptive Rubric
Paper: arXiv 2602.14069 (2026)
Claim: Preferences that a judge gives criterion by criterion and code adds up are better rewards than one number.
Reading: Weights of core, important and highlight, what is fatal, and both orders are the release's; how it is used in
    training is told in the abstract only: here the win rate within the group, a tie counting half. The programmed check
    is what the world pays, so who alone is right wins without a judge. A judge that fails leaves a comparison out,
    where the release takes it for a tie. Rules stand for the judge (`judge=http://...#MODEL` asks one).
Left out: Rubrics refined from the judge's errors.
Acts: reward/rubric_wins > 0 and fact/decided > 0
"""

from __future__ import annotations

from strop.filter.rewards.judged.rubric_wins import RubricWins
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def openrs(
    setting: Setting = Setting(),
    judge: str = "rules",  # who compares two replies: rules, itself, a model's folder, or http://HOST/v1#MODEL
    checked: bool = True,  # who alone is right by the world's own check wins without a judge
    kl: float = 0.001,  # weight of the penalty to the reference
) -> Run:
    """Every two attempts of a group are compared in both orders."""
    run = setting.run("openrs", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)))
    truth = measured(run.worlds)
    wins = RubricWins(parse_judge(judge, "strop.standins.judges.criteria:compared"), truth if checked else None)
    run.rewards, run.reward_seconds = (wins, truth), judge_seconds(judge)
    return run
