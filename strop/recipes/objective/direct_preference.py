"""Be nearer to what is preferred than to what is not, with neither reward model nor reference (DPPO).

Title: Direct Preference-based Policy Optimization without Reward Modeling
Paper: arXiv 2301.12842 (2023)
Claim: As good as or better than learning a reward first, on control tasks and in fine-tuning language models.
Reading: The distance of a policy to a text is its negative log-likelihood per token: ours. Pairs are siblings with
    different rewards.
Left out: The preference model of the first stage, and pairs across tasks.
Acts: preferred_share > 0
"""

from __future__ import annotations

from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.direct_preference import DirectPreference
from strop.training.reductions.sequence_mean import SequenceMean


def direct_preference(
    setting: Setting = Setting(),
    temperature_of_distance: float = 0.1,  # divides distances before they are compared
    conservatism: float = 1.0,  # below 1 the push away from the worse attempt is weaker
) -> Run:
    """All pairs of siblings with different rewards; no reference."""
    losses = (DirectPreference(temperature_of_distance, conservatism),)
    return setting.run("direct_preference", Constant(), losses, gates=(ZeroVariance(),), reduction=SequenceMean())
