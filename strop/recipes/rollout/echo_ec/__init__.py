"""No answer is known: paths branch where they are uncertain, the majority pays, and confidence steers clip and
advantage.

Title: ECHO: Entropy-Confidence Hybrid Optimization for Test-Time Reinforcement Learning
Paper: arXiv 2602.02150 (2026)
Claim: Better than other test-time RL on mathematics and images, with fewer samples.
Reading: The release's constants; its thresholds for branches cannot be reached by the metrics they are for, and its
    scripts switch branching off: see the mechanism. 64 samples of which 32 vote there; here all 16 rollouts do, half of
    them roots. Eight optimizer steps per batch there, four here. A temperature of 0.8, no KL. Tokens that rollouts
    share are credited with the sum. Answers are measured (`reward/outcome`) without being learned from.
Left out: The sampled token's probability as a third confidence, on the release's fused path.
Acts: share/branched > 0 and shaped > 0 and clip_width < 0.2
"""

from __future__ import annotations

from strop.filter.rewards.majority_vote import Majority
from strop.recipes.environment_metric import measured
from strop.recipes.rollout.echo_ec.advantage import HybridShaped
from strop.recipes.rollout.echo_ec.loss import ConfidentClip
from strop.recipes.rollout.echo_ec.strategy import ConfidentTree
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_standard import GroupStandard


def echo_ec(
    setting: Setting = Setting(group_size=16, temperature=0.8),
    uncertain: float = 0.95,  # quantile of entropies, from which on a path may branch
    unsure: float = 0.5,  # quantile of group confidence, up to which it may
    weight: float = 0.1,  # of entropy and confidence in advantage
    minibatches: int = 4,  # optimizer steps per batch
) -> Run:
    """group_size rollouts, half of them roots."""
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
