"""KTO: prospect-theoretic loss on single good or bad rollouts; no preference pairs.

Title: KTO: Model Alignment as Prospect Theoretic Optimization
Paper: arXiv 2402.01306 (2024)
Claim: A binary good-or-bad signal matches or beats learning from preference pairs, from 1B to 30B parameters.
Reading: Online. The reference point is the mean log-ratio of the group.
Acts: expected_kl != 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.kto import Kto
from strop.training.reductions.means import SequenceMean


def kto(
    setting: Setting = Setting(),
    beta: float = 0.1,  # scale of the implicit reward log(policy / reference)
) -> Run:
    """Each rollout is compared with the group's mean log-ratio."""
    return setting.run("kto", Constant(), (Kto(beta),), reduction=SequenceMean())
