"""REINFORCE++ with the KL inside the return (2501.03262): credit differs from token to token."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.token_returns import TokenReturns
from strop.train.losses.clip import Clip


def token_returns(setting: Setting = Setting(), kl: float = 0.01, clip: float = 0.2) -> Run:
    """The draw's returns, token by token, standardised as one."""
    return setting.run("token_returns", TokenReturns(kl), (Clip(clip, clip),))
