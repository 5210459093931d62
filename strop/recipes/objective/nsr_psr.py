"""Negative and positive reinforcement apart: which side teaches, and with what weight.

Title: The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning
Paper: arXiv 2506.01347 (2025)
Claim: Learning from wrong attempts alone keeps or raises pass@k up to k = 256, often to PPO's and GRPO's level.
Reading: `sides` both is W-REINFORCE with a tenth of the weight on what was right, negative is NSR, positive is PSR.
Acts: credit_mean != 0
"""

from __future__ import annotations

from strop.errors import ConfigurationError, nearest
from strop.filter.gates.one_sided import OneSided
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.signed import Signed
from strop.training.losses.clip import Clip

_SIDES = {"both": (), "negative": (OneSided("wrong"),), "positive": (OneSided("right"),)}


def nsr_psr(
    setting: Setting = Setting(),
    sides: str = "both",  # both, negative or positive
    positive: float = 0.1,  # weight of right attempts beside 1 of wrong ones
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """W-REINFORCE; `sides` negative is NSR and positive is PSR."""
    if sides not in _SIDES:
        raise ConfigurationError(f"nsr_psr has no sides {sides!r}: {nearest(sides, _SIDES)}")
    signed = Signed(positive=positive) if sides == "both" else Signed(positive=1.0)
    return setting.run("nsr_psr", signed, (Clip(clip, clip),), gates=_SIDES[sides])
