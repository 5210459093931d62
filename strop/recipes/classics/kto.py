"""Good and bad rollouts, without pairs.

Title: KTO: Model Alignment as Prospect Theoretic Optimization
Paper: arXiv 2402.01306 (2024)
Claim: A plain good-or-bad signal matches or beats learning from pairs, from 1B to 30B parameters.
Reading: Online; the point of reference is the siblings' mean log-ratio.
Acts: expected_kl != 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.kto import Kto
from strop.training.reductions.sequence_mean import SequenceMean


def kto(
    setting: Setting = Setting(),
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """Every rollout counts by itself, against the siblings' mean log-ratio."""
    return setting.run("kto", Constant(), (Kto(beta),), reduction=SequenceMean())
