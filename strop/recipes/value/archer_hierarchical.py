"""ArCHer: hierarchical multi-turn RL; an utterance-level critic and a token-level policy gradient.

Title: ArCHer: Training Language Model Agents via Hierarchical Multi-Turn RL
Paper: arXiv 2402.19446 (2024)
Claim: About 100 times fewer samples than on-policy methods in multi-turn tasks.
Reading: The target of V uses the turns of the rollouts instead of freshly sampled ones, which on-policy is the same in
    expectation.
Left out: Replay of earlier turns, actions sampled anew for the actor, and initial steps that train the critic alone.
Acts: advantage_within > 0 and value_grad_norm > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.per_turn import TurnAdvantage
from strop.training.losses.reinforce import Reinforce
from strop.training.values.turn_critic import TurnCritic


def archer_hierarchical(
    setting: Setting = Setting(env="guess:2"),
    discount: float = 0.95,  # from turn to turn
) -> Run:
    """On-policy, so without an importance ratio; all tokens of a turn share its advantage."""
    critic = TurnCritic(discount, device=setting.device)
    return setting.run("archer_hierarchical", TurnAdvantage(), (Reinforce(),), values=critic)
