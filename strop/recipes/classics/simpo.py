"""SimPO: logistic loss on length-normalized log-probabilities with a target margin; no reference policy.

Title: SimPO: Simple Preference Optimization with a Reference-Free Reward
Paper: arXiv 2405.14734 (2024)
Claim: Up to 6.4 points above DPO on AlpacaEval 2 and 7.5 on Arena-Hard.
Reading: Online: a pair is the best and the worst rollout of a group.
Acts: margin != 0
"""

from __future__ import annotations

from strop.recipes.preference_pairs import Pairs, pairing
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import SimPo


def simpo(
    setting: Setting = Setting(),
    beta: float = 2.0,  # scale of the mean log-probability per token
    gamma: float = 1.0,  # target margin
    pairs: Pairs = "sampled",  # sampled; given: columns `chosen` and `rejected` of a dataset, no rollouts
) -> Run:
    """Preference pairs: the best and the worst rollout of each group, or pairs from a dataset."""
    return setting.run("simpo", Constant(), (SimPo(beta, gamma),), **pairing(pairs))
