"""DAPO: GRPO with clip-higher, dynamic sampling, token-mean loss and overlong penalty; no KL penalty.

Title: DAPO: An Open-Source LLM Reinforcement Learning System at Scale
Paper: arXiv 2503.14476 (2025)
Claim: A 32B base model reaches 50 points on AIME 2024, in half the steps of DeepSeek-R1-Zero's recipe.
Reading: Groups without reward contrast are replaced by new ones. The paper makes 16 optimizer steps per training
    batch; here it is four, for a batch of eight groups. With one step all ratios are 1 and clipping has no effect.
Acts: clipped_share > 0 and dropped_groups > 0 and reward/overlong < 0 with max_tokens=30
"""

from __future__ import annotations

from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.overlong_penalty import Overlong
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def dapo(
    setting: Setting = Setting(),
    low: float = 0.2,  # lower clip range: ratios are at least 1 - low
    high: float = 0.28,  # upper clip range: ratios are at most 1 + high
    minibatches: int = 4,
) -> Run:
    """Clip-higher, dynamic sampling, token mean, soft overlong penalty; no KL penalty."""
    run = setting.run("dapo", GroupStandard(), (Clip(low, high),), gates=(ZeroVariance(),), minibatches=minibatches)
    run.rewards = (*run.rewards, Overlong(setting.max_tokens, cushion=setting.max_tokens // 5))
    return run
