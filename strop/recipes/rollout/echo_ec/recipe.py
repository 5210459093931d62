"""ECHO: test-time RL without labels; tree rollouts branch by entropy and confidence, a majority vote is the reward.

Title: ECHO: Entropy-Confidence Hybrid Optimization for Test-Time Reinforcement Learning
Paper: arXiv 2602.02150 (2026)
Claim: Better than other test-time RL on mathematics and images, with fewer samples.
Reading: The release's constants. Its branching thresholds cannot be reached by the metrics they apply to, and its
    scripts switch branching off: see the strategy. There 64 rollouts are sampled and 32 vote; here all 16 rollouts
    vote, half of them roots. Eight optimizer steps per batch there, four here. Temperature 0.8, no KL penalty.
    Confidence sets the clipping range and, with entropy, scales the advantage. Tokens that rollouts share get the sum
    of their advantages. The environment's outcome is measured (`reward/outcome`) but not trained on.
Left out: The sampled token's probability as a third confidence, on the release's fused path.
Acts: share/branched > 0 and shaped > 0 and clip_width < 0.2
"""

from __future__ import annotations

from strop.filter.rewards.majority_vote import Majority
from strop.recipes.environment_specs import measured
from strop.recipes.rollout.echo_ec.advantage import HybridShaped
from strop.recipes.rollout.echo_ec.loss import ConfidentClip
from strop.recipes.rollout.echo_ec.strategy import ConfidentTree
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_relative import GroupStandard


def echo_ec(
    setting: Setting = Setting(group_size=16, temperature=0.8),
    uncertain: float = 0.95,  # quantile of entropy from which a path may branch
    unsure: float = 0.5,  # quantile of group confidence up to which a path may branch
    weight: float = 0.1,  # of entropy and confidence in the advantage
    minibatches: int = 4,  # optimizer steps per batch
) -> Run:
    """group_size rollouts, half of them roots of the tree."""
    run = setting.run(
        "echo_ec",
        HybridShaped(AlongTree(GroupStandard()), weight),
        (ConfidentClip(),),
        strategy=ConfidentTree(max(setting.group_size // 2, 1), uncertain, unsure),
        minibatches=minibatches,
    )
    truth = measured(run.envs)
    run.rewards = (Majority(run.envs), truth)
    return run
