"""Likelihood of the better answer and the odds against the worse one, without a reference.

Title: ORPO: Monolithic Preference Optimization without Reference Model
Paper: arXiv 2403.07691 (2024)
Claim: One stage in place of fine-tuning and alignment: a 7B model reaches 12.2 % on AlpacaEval 2.
Reading: Online: the best and the worst of fresh rollouts are the pair.
Acts: kept_share < 1 and margin != 0
"""

from __future__ import annotations

from strop.recipes.preference_pairs import Pairs, pairing
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.orpo import Orpo


def orpo(
    setting: Setting = Setting(),
    odds: float = 0.1,  # weight of the odds beside the likelihood
    pairs: Pairs = "sampled",  # given: `chosen` and `rejected` of a table, nothing is sampled
) -> Run:
    """The best and the worst of fresh rollouts as a pair, or pairs that a table brings."""
    return setting.run("orpo", Constant(), (Orpo(odds),), **pairing(pairs))
