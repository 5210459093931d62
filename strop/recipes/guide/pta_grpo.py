"""A plan first, several ways to work it out, and pay for plans that lead there often.

Key: pta-grpo
Title: Plan Then Action: High-Level Planning Guidance Reinforcement Learning for LLM Reasoning
Paper: arXiv 2510.01833 (2025)
Claim: Better than GRPO and other baselines on ten mathematics benchmarks, for models of 3B to 14B.
Reading: The warm-up imitates the worlds' solutions with a plan before each: their steps without results, in place of a
    larger model's summaries. Then 3 plans for a task and 3 attempts of each; an attempt is paid for being right, for
    how often its plan's attempts are right, and a tenth for its form; the paper's weights were not found. Tokens of a
    plan are trained once and credited with the mean of its attempts. All attempts of a group are compared, in units of
    their spread. Optimizer steps per draw are not known: one.
Left out: A pay for short plans, which reviews mention and do not spell out.
Acts: shared_token_share > 0 and reward/plan_quality > 0 with taught=12, world=arithmetic:1
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.rewards.in_parts import InParts
from strop.filter.rewards.plan_quality import PlanQuality
from strop.generate.agents.demonstrate_plan import DemonstratePlan
from strop.generate.strategies.plans import Plans
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def pta_grpo(
    setting: Setting = Setting(group_size=3),
    chains: int = 3,  # attempts of each plan
    taught: int = 40,  # steps of supervised training on plans before
    quality: float = 1.0,  # weight of the pay for a plan's attempts
    form: float = 0.1,  # weight of the pay for a plan, a thought and an answer
) -> Run:
    """group_size is the number of plans; a group is up to chains times as many attempts."""
    run = setting.run(
        "pta_grpo",
        AlongTree(GroupStandard(), "mean"),
        (Clip(0.2, 0.2),),
        strategy=Plans(chains),
    )
    (judged,) = run.rewards
    run.rewards = (judged, PlanQuality(judged, quality), InParts(weight=form))
    before = shown(setting, "pta_grpo", taught)
    run.warmup = None if before is None else replace(before, agent=DemonstratePlan(before.agent))
    return run
