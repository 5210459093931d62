"""At each step of an expert the policy says what it would do: that is to be preferred less, or not to be told apart.

Title: From Novice to Expert: LLM Agent Policy Optimization via Step-wise Reinforcement Learning
Paper: arXiv 2411.03817 (2024)
Claim: Rewards for steps, made by comparing them with an expert's, beat methods that know only how an episode ended.
Reading: `form` has both variants. implicit: DPO of the expert's step against the policy's, behind the expert's history,
    which cancels. inverse: a discriminator pays the policy's steps, by a policy gradient, and learns after it. The
    expert is the world itself; pairs are made anew in each draw. No constants were found: those here are ours. The full
    text was not read: the structure follows surveys that name both variants.
Left out: PPO's ratio in the inverse form: one optimizer step per draw has none.
Acts: margin != 0 and share/teacher > 0 and dropped_groups > 0 with steps=2
"""

from __future__ import annotations

from typing import Any, Literal

from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.noted import Noted
from strop.generate.agents.demonstrate import Demonstrate
from strop.generate.strategies.expert_steps import ExpertSteps
from strop.recipes.setting import Setting
from strop.roles import Advantage, Loss
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.advantages.discriminated import Discriminated
from strop.train.losses.pairs.dpo import Dpo
from strop.train.losses.reinforce import Reinforce
from strop.train.reductions.sequence_mean import SequenceMean


def stepagent(
    setting: Setting = Setting(world="keyvalue:4", group_size=4),
    form: Literal["implicit", "inverse"] = "implicit",  # preferences, or a discriminator
    beta: float = 0.1,  # implicit: of the reward that log(policy / reference) stands for
    rate: float = 0.5,  # inverse: of the discriminator's descent
) -> Run:
    """`group_size` steps of each expert's attempt are compared, as far as it has so many."""
    is_implicit = form == "implicit"
    parts: dict[str, Any] = {
        "strategy": ExpertSteps(Demonstrate(), keeps_equal=not is_implicit),
        "gates": (ZeroVariance(),),
        "reduction": SequenceMean(),
    }
    advantage: Advantage = Constant() if is_implicit else Discriminated(rate)
    loss: Loss = Dpo(beta) if is_implicit else Reinforce()
    run = setting.run("stepagent", advantage, (loss,), **parts)
    (judged,) = run.rewards
    run.rewards = (Noted(judged),)
    return run
