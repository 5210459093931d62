"""ArCHer (2402.19446): a critic of whole turns above, a policy gradient of tokens below."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.turn_advantage import TurnAdvantage
from strop.train.losses.reinforce import Reinforce
from strop.train.values.turn_critic import TurnCritic


def archer_hierarchical(setting: Setting = Setting(world="guess:2"), discount: float = 0.95) -> Run:
    """On-policy, so no ratio is needed; the same credit for every token of a turn."""
    critic = TurnCritic(discount, device=setting.device)
    return setting.run("archer_hierarchical", TurnAdvantage(), (Reinforce(),), values=critic)
