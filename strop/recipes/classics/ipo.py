"""DPO with a margin to reach instead of one to widen for ever.

Title: A General Theoretical Paradigm to Understand Learning from Human Preferences
Paper: arXiv 2310.12036 (2023)
Claim: It does not overfit preferences that are nearly certain, where DPO forgets its reference.
Reading: Online: the best and the worst of fresh rollouts are the pair.
Acts: kept_share < 1 and margin != 0
"""

from __future__ import annotations

from strop.recipes.preference_pairs import Pairs, pairing
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.ipo import Ipo


def ipo(
    setting: Setting = Setting(),
    tau: float = 0.1,  # the margin to reach is 1 / (2 tau)
    pairs: Pairs = "sampled",  # given: `chosen` and `rejected` of a table, nothing is sampled
) -> Run:
    """The best and the worst of fresh rollouts as a pair, or pairs that a table brings."""
    return setting.run("ipo", Constant(), (Ipo(tau),), **pairing(pairs))
