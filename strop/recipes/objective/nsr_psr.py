"""Negative and positive reinforcement apart (2506.01347): which side teaches, and with what weight."""

from __future__ import annotations

from strop.errors import ConfigurationError, nearest
from strop.filter.gates.one_sided import OneSided
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.signed import Signed
from strop.train.losses.clip import Clip

_SIDES = {"both": (), "negative": (OneSided("wrong"),), "positive": (OneSided("right"),)}


def nsr_psr(setting: Setting = Setting(), sides: str = "both", positive: float = 0.1, clip: float = 0.2) -> Run:
    """W-REINFORCE; `sides` negative is NSR and positive is PSR."""
    if sides not in _SIDES:
        raise ConfigurationError(f"nsr_psr has no sides {sides!r}: {nearest(sides, _SIDES)}")
    signed = Signed(positive=positive) if sides == "both" else Signed(positive=1.0)
    return setting.run("nsr_psr", signed, (Clip(clip, clip),), gates=_SIDES[sides])
