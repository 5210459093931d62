"""DPO: logistic loss on preference pairs, the best against the worst rollout of a group; no reward model.

Title: Direct Preference Optimization: Your Language Model is Secretly a Reward Model
Paper: arXiv 2305.18290 (2023)
Claim: A classification loss on preferences controls sentiment better than PPO-based RLHF and matches it in summaries
    and dialogue.
Reading: Online: each step makes its pairs from the current policy's rollouts. `pairs=given` takes the pairs of a
    dataset, as in the paper.
Acts: margin != 0
"""

from __future__ import annotations

from strop.recipes.preference_pairs import Pairs, pairing
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Dpo


def dpo(
    setting: Setting = Setting(),
    beta: float = 0.1,  # scale of the implicit reward log(policy / reference)
    pairs: Pairs = "sampled",  # sampled; given: columns `chosen` and `rejected` of a dataset, no rollouts
) -> Run:
    """Pairs from the current policy's rollouts, where groups without contrast are replaced; or pairs from a dataset."""
    return setting.run("dpo", Constant(), (Dpo(beta),), **pairing(pairs))
