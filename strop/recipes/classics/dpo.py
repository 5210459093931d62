"""The best and the worst of fresh rollouts as a preference pair, without a reward model.

Title: Direct Preference Optimization: Your Language Model is Secretly a Reward Model
Paper: arXiv 2305.18290 (2023)
Claim: A classification loss on preferences controls sentiment better than PPO-based RLHF and matches it in summaries
    and dialogue.
Reading: Online: pairs are made by the current policy each step; the paper's fixed set of pairs is `pairs=given`.
Acts: kept_share < 1 and margin != 0
"""

from __future__ import annotations

from strop.recipes.preference_pairs import Pairs, pairing
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo


def dpo(
    setting: Setting = Setting(),
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
    pairs: Pairs = "sampled",  # given: `chosen` and `rejected` of a table, nothing is sampled
) -> Run:
    """Pairs are made by the current policy each step, and groups without contrast replaced; or a table brings them."""
    return setting.run("dpo", Constant(), (Dpo(beta),), **pairing(pairs))
