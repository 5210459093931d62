"""Online FPO (2411.07618): DPO per token, held near the reference in feature space."""

from __future__ import annotations

from strop.filter.gates.best_and_worst import BestAndWorst
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.feature_dpo import FeatureDpo
from strop.train.reductions.sequence_mean import SequenceMean


def fpo(setting: Setting = Setting(), beta: float = 0.1, alpha: float = 0.5, features: str = "") -> Run:
    """`features` is a sparse autoencoder's file; without one the last states themselves are the features."""
    losses = (FeatureDpo(beta, alpha, features=features or None),)
    return setting.run("fpo", Constant(), losses, gates=(BestAndWorst(),), reduction=SequenceMean())
