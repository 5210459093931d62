"""Demonstrations are imitated, and their gaps filled at random: what fills them well is reinforced, in one pass.

Title: Semi-Offline Reinforcement Learning for Optimized Text Generation
Paper: arXiv 2306.09712 (2023)
Claim: As good as the best offline and online methods at a small part of the cost of online ones.
Reading: A share of 0.4 of tokens are gaps; 64 fillings and the weight 20 of the reward's loss beside imitation are the
    release's for news summaries. Demonstrations are the world's own and stand for target texts. The release encodes a
    source and decodes with gaps; here one model reads both. Its log-probabilities give tokens that were not drawn a
    logit of 0; these are of the whole distribution. The loss is summed over fillings there and averaged here, so its
    weight is 64 times 20. A filling's log-probability is divided by its number of gaps to a power that was not found: 1
    here, the mean over gaps.
Left out: Gaps of whole words, and none after commas and full stops. ROUGE-L. Rewards other than overlap.
Acts: overlap < 1 and overlap_spread > 0 and gaps > 0
"""

from __future__ import annotations

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.imitation.filled import Filled
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.sequence_mean import SequenceMean


def semi_offline(
    setting: Setting = Setting(world="countdown:4", group_size=1, groups_per_step=64),
    rate: float = 0.4,  # of tokens that are gaps; 0 is imitation alone
    fillings: int = 64,  # of each demonstration
    reinforced: float = 1280.0,  # weight of what fillings teach beside imitation
) -> Run:
    """Nothing is sampled but within the loss: steps end such a run, not tokens."""
    losses = (Likelihood(), Filled(rate, fillings, seed=setting.seed, weight=reinforced))
    return setting.run("semi_offline", Constant(), losses, agent=Demonstrate(), reduction=SequenceMean())
