"""Step by step, what an expert did is preferred to what the policy would have done in his place.

Title: From Novice to Expert: LLM Agent Policy Optimization via Step-wise Reinforcement Learning
Paper: arXiv 2411.03817 (2024)
Claim: Rewards for single steps, from comparing an agent's actions with an expert's, beat those for whole attempts.
Reading: The full text was not found; the implicit form as surveys tell it: DPO on pairs of actions behind the expert's
    own history, whose log-ratio is the step's reward. The policy's actions are sampled anew in each step. Where all of
    them are the expert's there is no pair, and another task takes the place; of several the one that is furthest off.
Left out: The inverse form: a discriminator of experts, and PPO on what it says.
Acts: kept_share < 1 and margin != 0 and share/branched > 0
"""

from __future__ import annotations

from strop.filter.gates.best_and_worst import BestAndWorst
from strop.generate.agents.demonstrate import Demonstrate
from strop.generate.agents.one_action import OneAction
from strop.generate.agents.one_demonstration import OneDemonstration
from strop.generate.strategies.beside_expert import BesideExpert
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.pairs.dpo import Dpo
from strop.train.reductions.sequence_mean import SequenceMean


def stepagent(
    setting: Setting = Setting(world="keyvalue:5", group_size=4),
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """One of group_size actions is the expert's."""
    strategy = BesideExpert(Demonstrate(), OneDemonstration(), OneAction())
    parts = {"strategy": strategy, "gates": (BestAndWorst(),), "reduction": SequenceMean()}
    return setting.run("stepagent", Constant(), (Dpo(beta),), **parts)
