"""Step by step, what an expert did is preferred to what the policy would have done in his place.

Title: From Novice to Expert: LLM Agent Policy Optimization via Step-wise Reinforcement Learning
Paper: arXiv 2411.03817 (2024)
Claim: Rewards for single steps, from comparing an agent's actions with an expert's, beat those for whole attempts.
Reading: The full text was not found; the implicit form as surveys tell it: DPO on pairs of actions behind the expert's
    own history, whose log-ratio is the step's reward. The policy's actions are sampled anew in each step. Where all of
    them are the expert's there is no pair, and another task takes the place; of several the one that is furthest off.
    form=inverse: a discriminator pays steps that it cannot tell from the expert's, and learns after it was asked.
Left out: PPO's ratio in the inverse form: one optimizer step per draw has none.
Acts: kept_share < 1 and margin != 0 and share/branched > 0
"""

from __future__ import annotations

from typing import Literal

from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.from_strategy import Noted
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.one_demonstration import OneDemonstration
from strop.generate.agents.single_action import OneAction
from strop.generate.strategies.beside_expert import BesideExpert
from strop.generate.strategies.expert_steps import ExpertSteps
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.discriminated import Discriminated
from strop.training.losses.pairs.dpo import Dpo
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.sequence_mean import SequenceMean


def stepagent(
    setting: Setting = Setting(world="keyvalue:5", group_size=4),
    form: Literal["implicit", "inverse"] = "implicit",  # preferences, or a discriminator
    beta: float = 0.1,  # implicit: of the reward that log(policy / reference) stands for
    rate: float = 0.5,  # inverse: of the discriminator's descent
) -> Run:
    """One of group_size actions is the expert's; in the inverse form group_size steps have a pair each."""
    if form == "inverse":
        return _inverse(setting, rate)
    strategy = BesideExpert(Demonstrate(), OneDemonstration(), OneAction())
    parts = {"strategy": strategy, "gates": (BestAndWorst(),), "reduction": SequenceMean()}
    return setting.run("stepagent", Constant(), (Dpo(beta),), **parts)


def _inverse(setting: Setting, rate: float) -> Run:
    strategy = ExpertSteps(Demonstrate())
    parts = {"strategy": strategy, "gates": (ZeroVariance(),), "reduction": SequenceMean()}
    run = setting.run("stepagent", Discriminated(rate), (Reinforce(),), **parts)
    (judged,) = run.rewards
    run.rewards = (Noted(judged),)
    return run
