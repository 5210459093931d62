"""GRPO on rubrics whose dimensions saturate and whose vetoes zero everything; a veto against hacking joins later.

Title: Reinforcement Learning with Rubric Anchors
Paper: arXiv 2508.12790 (2025)
Claim: 5.2 % more on open-ended tasks from 5,000 samples and 10,000 rubrics, 2.4 % above a model of 671B.
Reading: The paper gives no equations for its aggregation: veto and saturation are read plainly, the constant is ours; a
    veto is met from a score of 50 of 100 on. The first stage is a run of its own before this one, with its rubrics
    without the veto against hacking. Groups stay whose mean is within a central band, where the paper filters tasks
    once by the scores of the model it begins with. Rules stand for bank and judge (`judge=http://...#MODEL` asks one).
    What the world would have paid is logged beside it and weighs nothing.
Left out: Interactions of dimensions and the stretching of high scores, for which no form was found; rubrics for style.
Acts: reward/rubric_anchors > 0 and fact/vetoed > 0 and kept_share < 1 with first=1
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.gates.reward_band import RewardBand
from strop.filter.rewards.judged.rubric_anchors import RubricAnchors
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl

_RULES = "strop.standins.judges.criteria"


def rubric_anchors(
    setting: Setting = Setting(),
    judge: str = "rules",  # bank of rubrics and judge: rules, itself, a model's folder, or http://HOST/v1#MODEL
    first: int = 20,  # steps of the first stage, before the veto against hacking
    saturation: float = 2.0,  # the larger, the less a dimension pays that is good already
    low: float = 0.1,  # least mean reward of a group that is trained on
    high: float = 0.95,  # largest mean reward
    kl: float = 0.001,  # weight of the penalty to the reference
) -> Run:
    """`first` steps come before `steps`, and differ in the rubric alone."""

    def stage(sizes: Setting, rubric: str) -> Run:
        gates = (RewardBand(low, high),)
        run = sizes.run("rubric_anchors", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), gates=gates)
        truth = measured(run.worlds)
        writer, scorer = (parse_judge(judge, f"{_RULES}:{name}") for name in (rubric, "scored"))
        run.rewards, run.reward_seconds = (RubricAnchors(writer, scorer, saturation), truth), judge_seconds(judge)
        return run

    run = stage(setting, "guarded")
    run.warmup = stage(replace(setting, steps=first), "anchored")
    return run
