"""RLOO on stale data with a selectable off-policy correction, for lag sweeps.

Acts: lag > 0 and correction != 1
"""

from __future__ import annotations

from strop.errors import ConfigurationError, nearest
from strop.recipes.setting import Setting
from strop.roles import Correction
from strop.run import Run
from strop.training.advantages.group_relative import LeaveOneOut
from strop.training.corrections.geometric import Geometric
from strop.training.corrections.importance_weights import (
    Clamped,
    Masked,
    SequenceMasked,
    SequenceTruncated,
    Truncated,
    Veto,
)
from strop.training.losses.reinforce import Reinforce


def off_policy(setting: Setting = Setting(lag=4), correction: str = "truncated") -> Run:
    """The plain policy gradient; `correction` is none, truncated, masked, clamped, veto, geometric or sequence_..."""
    known: dict[str, Correction | None] = {
        "none": None,
        "truncated": Truncated(),
        "masked": Masked(),
        "clamped": Clamped(),
        "veto": Veto(Truncated()),
        "geometric": Geometric(inner=Truncated()),
        "sequence_truncated": SequenceTruncated(),
        "sequence_masked": SequenceMasked(),
    }
    if correction not in known:
        raise ConfigurationError(f"there is no correction {correction!r}: {nearest(correction, known)}")
    return setting.run("off_policy", LeaveOneOut(), (Reinforce(),), correction=known[correction])
