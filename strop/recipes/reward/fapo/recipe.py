"""FAPO: GRPO with an asymmetric clip and a penalty for right answers with a flawed step, found by a judge.

Title: FAPO: Flawed-Aware Policy Optimization for Efficient and Reliable Reasoning
Paper: arXiv 2510.22543 (2025)
Claim: More right answers, more reliable chains of thought and steadier training, at no more tokens.
Reading: As released: 8 rollouts, clip 0.2 and 0.28, token mean, no KL penalty, an overlong penalty over the second half
    of the length limit, 16 optimizer steps of 32 of 512 tasks per batch; four fit a batch of eight tasks. If the judge
    fails, the rollout counts as free of flaws. The paper's judge is a model that `fapo_genrm` trains; by default a rule
    that checks calculations stands in for it. Held-out tasks are never judged. At a temperature of 1 the bundled model
    hardly ever reaches a right answer by wrong steps, so 1.6 is the default.
Acts: fact/flawed > 0 with group_size=8, groups_per_step=8
"""

from __future__ import annotations

from strop.filter.rewards.overlong_penalty import Overlong
from strop.filter.rewards.weighted_sum import as_one
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.reward.fapo.reward import Flawed
from strop.recipes.setting import Setting
from strop.run import Run
from strop.standins.judges.steps import first_error
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def fapo(
    setting: Setting = Setting(env="countdown:3", temperature=1.6),
    judge: str = "rules",  # finds wrong steps (a named part)
    penalty: float = 1.0,  # subtracted from a right answer with a wrong step
    low: float = 0.2,  # importance ratios are clipped below 1 - low
    high: float = 0.28,  # importance ratios are clipped above 1 + high
    minibatches: int = 4,  # optimizer steps per batch
) -> Run:
    """Reward 1 for a right answer without wrong steps, 0 for a right one with them, -1 for a wrong answer."""
    run = setting.run("fapo", GroupStandard(), (Clip(low, high),), minibatches=minibatches)
    outcome = as_one(run.rewards)
    flawed = Flawed(outcome, named_part("judge", judge, setting, first_error), penalty)
    truth = measured(run.envs)
    run.reward_seconds = reward_seconds(judge)
    run.rewards = (flawed, truth, Overlong(setting.max_tokens, setting.max_tokens // 2))
    return run
