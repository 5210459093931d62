"""PPO's clip without a critic, advantages standardised over the whole batch.

Title: REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage Normalization
Paper: arXiv 2501.03262 (2025)
Claim: Standardising over the whole batch is steadier than over each group, and nears PPO without a critic.
Reading: `advantage` has the three forms of the paper: draw with the KL as a loss, group (REINFORCE++-baseline: the
    group's mean first; the paper's kl is 0.001 there) and tokens (the KL inside the return, as first published).
Acts: advantage > 0 and reference_kl != 0
"""

from __future__ import annotations

from strop.errors import ConfigurationError, nearest
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.advantages.baseline_standard import BaselineStandard
from strop.training.advantages.batch_standard import BatchStandard
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def reinforce_plus_plus(
    setting: Setting = Setting(),
    advantage: str = "draw",  # draw, group or tokens: what is standardised, and where the KL goes
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.01,  # weight of the penalty to the reference
) -> Run:
    """The penalty to the reference is k2, whose gradient is the KL's."""
    known: dict[str, Advantage] = {
        "draw": BatchStandard(),
        "group": BaselineStandard(),
        "tokens": TokenReturns(kl),
    }
    if advantage not in known:
        raise ConfigurationError(f"reinforce_plus_plus has no advantage {advantage!r}: {nearest(advantage, known)}")
    penalty = (Kl("k2", kl),) if kl and advantage != "tokens" else ()
    return setting.run("reinforce_plus_plus", known[advantage], (Clip(clip, clip), *penalty))
