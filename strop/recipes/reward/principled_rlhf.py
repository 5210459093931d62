"""A reward model from rankings of several replies, and a policy that trusts it only where its rankings say something.

Title: Principled Reinforcement Learning with Human Feedback from Pairwise or K-wise Comparisons
Paper: arXiv 2301.11270 (2023)
Claim: Maximum likelihood on rankings converges; a policy that maximizes its reward may fail where a pessimistic one,
    under coverage, does not. K-wise likelihood is more efficient than splitting into pairs.
Reading: Two runs of one recipe: without judge it makes the reward model (Plackett-Luce on rankings of group_size
    replies, or Bradley-Terry on all their pairs with split), with judge=FOLDER it trains a policy on its score less the
    penalty. The paper's reward is linear in given features: here they are the states behind the verdict. Its penalty is
    for a policy, ours for each reply. Bound, ridge and the policy's optimizer are ours, the paper is theory.
Acts: score_margin != 0
"""

from __future__ import annotations

from strop.environments.judging.preferences import Preferences
from strop.filter.rewards.env_reward import Earned
from strop.filter.rewards.pessimistic import Pessimistic
from strop.generate.reward_model import RewardModel
from strop.models.names import model_folder
from strop.recipes.reward_model_runs import preferring
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.kl import Kl
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.losses.preferences.plackett_luce import PlackettLuce
from strop.training.losses.reinforce import Reinforce


def principled_rlhf(
    setting: Setting = Setting(world="arithmetic:2", group_size=4, groups_per_step=32, learning_rate=1e-3),
    judge: str = "",  # folder of a reward model; empty: make one
    split: bool = False,  # rankings into pairs, for the reward model
    bound: float = 0.1,  # of the penalty for what the rankings say little about
    ridge: float = 0.1,  # on the diagonal of their covariance
    kl: float = 0.01,  # weight of the penalty to the reference
) -> Run:
    """First a reward model, then, with it as judge, a policy."""
    if not judge:
        loss: Loss = BradleyTerry() if split else PlackettLuce()
        return preferring(setting, "principled_rlhf", (loss,), replies=setting.group_size)
    run = setting.run("principled_rlhf", GroupMean(), (Reinforce(), Kl("k3", kl)))
    worlds = tuple(Preferences(world) for world in run.worlds)
    model = RewardModel(str(model_folder(judge)), setting.device)
    run.rewards = (Pessimistic(model, worlds, bound, ridge), Earned(weight=0.0))
    return run
