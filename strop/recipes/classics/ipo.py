"""IPO: squared loss that fits the log-ratio margin of a preference pair to a fixed target, 1 / (2 tau).

Title: A General Theoretical Paradigm to Understand Learning from Human Preferences
Paper: arXiv 2310.12036 (2023)
Claim: It does not overfit nearly deterministic preferences, where DPO ignores its KL regularization.
Reading: Online: a pair is the best and the worst rollout of a group.
Acts: margin != 0
"""

from __future__ import annotations

from strop.recipes.preference_pairs import Pairs, pairing
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Ipo


def ipo(
    setting: Setting = Setting(),
    tau: float = 0.1,  # the target margin is 1 / (2 tau)
    pairs: Pairs = "sampled",  # sampled; given: columns `chosen` and `rejected` of a dataset, no rollouts
) -> Run:
    """Preference pairs: the best and the worst rollout of each group, or pairs from a dataset."""
    return setting.run("ipo", Constant(), (Ipo(tau),), **pairing(pairs))
