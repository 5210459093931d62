"""ORPO: likelihood of the chosen completion plus an odds-ratio loss on preference pairs; no reference policy.

Title: ORPO: Monolithic Preference Optimization without Reference Model
Paper: arXiv 2403.07691 (2024)
Claim: One stage in place of fine-tuning and alignment: a 7B model reaches 12.2 % on AlpacaEval 2.
Reading: Online: a pair is the best and the worst rollout of a group.
Acts: margin != 0
"""

from __future__ import annotations

from strop.recipes.preference_pairs import Pairs, pairing
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Orpo


def orpo(
    setting: Setting = Setting(),
    odds: float = 0.1,  # weight of the odds-ratio loss; the likelihood has weight 1
    pairs: Pairs = "sampled",  # sampled; given: columns `chosen` and `rejected` of a dataset, no rollouts
) -> Run:
    """Preference pairs: the best and the worst rollout of each group, or pairs from a dataset."""
    return setting.run("orpo", Constant(), (Orpo(odds),), **pairing(pairs))
