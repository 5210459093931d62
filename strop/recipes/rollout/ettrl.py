"""A tree of attempts that forks where the policy is uncertain, rewarded by the answer that most of its leaves give.

Title: ETTRL: Balancing Exploration and Exploitation in LLM Test-Time Reinforcement Learning Via Entropy Mechanism
Paper: arXiv 2508.11356 (2025)
Claim: 68 % better Pass@1 on AIME 2024 for Llama3.1-8B than TTRL, with 60 % of its tokens.
Reading: No release was found. `group_size` counts the roots, of which the paper has 12; with two positions and two
    branches each has five leaves. All leaves vote and are compared as one group. Each leaf counts as if it were trained
    whole: tokens that several share are credited with the sum. Optimizer steps per draw are not known: one. Tasks are
    the world's train tasks, and their answers are measured (`reward/outcome`) without being learned from.
Left out: The clipped advantage, which the paper tries beside the reshaped one.
Acts: share/branched > 0 and credit_within > 0
"""

from __future__ import annotations

from strop.filter.rewards.majority_vote import Majority
from strop.generate.strategies.trees.entropy_forks import EntropyForks
from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.entropy_reshaped import EntropyReshaped
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def ettrl(
    setting: Setting = Setting(group_size=12),
    positions: int = 2,  # of an attempt, from which others branch off
    branches: int = 2,  # from each position
    rule: str = "sum",  # or mean: the credit of tokens that several attempts share
) -> Run:
    """group_size roots; no answer is known, so that of the majority is taken for right."""
    run = setting.run(
        "ettrl",
        AlongTree(EntropyReshaped(GroupStandard()), rule),
        (Clip(),),
        strategy=EntropyForks(positions, branches),
    )
    run.rewards = (Majority(run.worlds), measured(run.worlds))
    return run
