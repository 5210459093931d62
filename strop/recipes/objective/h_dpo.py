"""DPO with a hand on how sharp its optimum is.

Title: Entropy Controllable Direct Preference Optimization
Paper: arXiv 2411.07595 (2024)
Claim: Sharper policies: better pass@k on mathematics than DPO's.
Reading: Online; alpha multiplies the policy's side alone. 1 is DPO.
Acts: kept_share < 1 and margin != 0
"""

from __future__ import annotations

from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.h_dpo import HDpo
from strop.training.reductions.sequence_mean import SequenceMean


def h_dpo(
    setting: Setting = Setting(),
    alpha: float = 0.9,  # below 1 the optimum is sharper than DPO's, above flatter
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """alpha 1 is DPO; below, the policy ends up sharper than the reference."""
    return setting.run("h_dpo", Constant(), (HDpo(alpha, beta),), gates=(BestAndWorst(),), reduction=SequenceMean())
