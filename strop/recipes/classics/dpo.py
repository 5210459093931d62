"""The best and the worst of fresh attempts as a preference pair, without a reward model.

Title: Direct Preference Optimization: Your Language Model is Secretly a Reward Model
Paper: arXiv 2305.18290 (2023)
Claim: A classification loss on preferences controls sentiment better than PPO-based RLHF and matches it in summaries
    and dialogue.
Reading: Online: pairs are made by the current policy each step; the paper has a fixed set of pairs.
Acts: kept_share < 1 and margin != 0
"""

from __future__ import annotations

from strop.filter.gates.best_and_worst import BestAndWorst
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean


def dpo(
    setting: Setting = Setting(),
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """Pairs are made by the current policy each step; groups without contrast give none and are replaced."""
    return setting.run("dpo", Constant(), (Dpo(beta),), gates=(BestAndWorst(),), reduction=SequenceMean())
