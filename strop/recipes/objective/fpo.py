"""DPO per token, held near the reference in feature space.

Title: Direct Preference Optimization Using Sparse Feature-Level Constraints
Paper: arXiv 2411.07618 (2024)
Claim: The win rate rises by 5.08 points at lower cost.
Reading: Online; the last layer's states, as released, where the paper takes an inner one. Without a sparse
    autoencoder's file the states themselves are the features.
Left out: Features of the reference computed beforehand, and thresholds of JumpReLU: an autoencoder's features are
    ReLU(states @ encoder + bias).
Acts: margin != 0 and feature_drift > 0
"""

from __future__ import annotations

from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.feature_dpo import FeatureDpo
from strop.training.reductions.sequence_mean import SequenceMean


def fpo(
    setting: Setting = Setting(),
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
    alpha: float = 0.5,  # weight of the distance in feature space
    features: str = "",  # a sparse autoencoder's file; empty: the last states themselves
) -> Run:
    """`features` is a sparse autoencoder's file; without one the last states themselves are the features."""
    losses = (FeatureDpo(beta, alpha, features=features or None),)
    return setting.run("fpo", Constant(), losses, gates=(BestAndWorst(),), reduction=SequenceMean())
