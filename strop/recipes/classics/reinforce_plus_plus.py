"""REINFORCE++: PPO clipping with advantages normalized over the whole batch; no critic.

Title: REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage Normalization
Paper: arXiv 2501.03262 (2025)
Claim: Normalizing over the whole batch is steadier than over each group, and nears PPO without a critic.
Reading: `advantage` selects one of the paper's three forms. `batch`: the KL is a loss. `group`
    (REINFORCE++-baseline): the group mean is subtracted first; the paper's kl is 0.001 there. `tokens`: the KL is
    inside the return, as first published.
Acts: advantage > 0 and reference_kl != 0
"""

from __future__ import annotations

from strop.errors import ConfigurationError, nearest
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.advantages.batch_relative import BaselineStandard, BatchStandard
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def reinforce_plus_plus(
    setting: Setting = Setting(),
    advantage: str = "batch",  # batch, group (mean subtracted first) or tokens (KL inside the return)
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
) -> Run:
    """Batch-normalized advantages; the KL penalty is the k2 estimator, whose gradient is that of the KL."""
    known: dict[str, Advantage] = {
        "batch": BatchStandard(),
        "group": BaselineStandard(),
        "tokens": TokenReturns(kl),
    }
    if advantage not in known:
        raise ConfigurationError(f"reinforce_plus_plus has no advantage {advantage!r}: {nearest(advantage, known)}")
    penalty = (Kl("k2", kl),) if kl and advantage != "tokens" else ()
    return setting.run("reinforce_plus_plus", known[advantage], (Clip(clip, clip), *penalty))
