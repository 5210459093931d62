"""PAR: PPO with preference-as-reward shaping, the sigmoid of the score difference to a reference rollout.

Title: Reward Shaping to Mitigate Reward Hacking in RLHF
Paper: arXiv 2502.18770 (2025)
Claim: At least 5 points of win rate on AlpacaEval 2.0 over other shapings, with a single reference reward, and no
    hacking after two epochs.
Reading: References are sampled with each group instead of scored beforehand; one is enough according to the paper, its
    code takes ten. judge is the folder of a reward model trained by a run here, such as one of axiomatic_preference;
    without one the environment's own check is the score. PPO's hyperparameters are ours, and the advantage is not
    whitened: dividing by its standard deviation would undo the bound. The environment's own reward is logged with
    weight 0.
Acts: reward/preferred != 0.5 and kept_share < 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.control.budgets.fixed import Fixed
from strop.errors import ConfigurationError
from strop.filter.rewards.reward_model import Scored
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.reward_model import RewardModel
from strop.generate.rollout_limits import REFERENCE
from strop.recipes.environment_specs import judged_by, measured
from strop.recipes.named_parts import named_model
from strop.recipes.reward.par.reward import Preferred
from strop.recipes.setting import Setting
from strop.roles import Gate, Player, Strategy
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic
from strop.types import GateResult, Group, Origin, Rollout, Start

# Removal of the reference rollouts, which only serve for comparison.


@dataclass(frozen=True)
class PolicyRolloutsOnly(Gate):
    """All rollouts except those of origin TEACHER."""

    def __call__(self, group: Group) -> GateResult:
        kept = [rollout for rollout in group.scored if rollout.origin is not Origin.TEACHER]
        if not kept:
            return GateResult(None, f"none of {len(group.scored)} rollouts is the policy's own")
        reason = f"{len(kept)} of {len(group.scored)} rollouts are the policy's own"
        return GateResult(replace(group, rollouts=kept), reason)


# Rollouts of the initial policy at the same task, for rewards that compare with it.


@dataclass(frozen=True)
class ReferenceRollouts(Strategy):
    """Groups whose last `count` rollouts are the reference policy's (TEACHER); needs the engine `WithReference`."""

    count: int = 1

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        own = len(starts) - self.count
        if own < 1 or self.count < 1:
            raise ConfigurationError(
                f"{self.count} of {len(starts)} rollouts are the reference's: need at least 1 of it and 1 of the policy"
            )
        theirs = [replace(each, policy_name=REFERENCE, origin=Origin.TEACHER) for each in starts[own:]]
        return await together(play(start) for start in (*starts[:own], *theirs))


def par(
    setting: Setting = Setting(),
    judge: str = "",  # folder of a reward model; empty: the environment's own check is the score
    references: int = 1,  # rollouts of the initial policy per task
    steepness: float = 1.0,  # slope of the sigmoid of the score difference
    clip: float = 0.2,  # PPO clip range of the importance ratio
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
) -> Run:
    """PPO on sigmoid(steepness * (score - score of the reference rollout))."""
    run = setting.run(
        "par",
        Gae(whiten=False),  # whitening would undo the bound
        (Clip(clip, clip), Kl("k2", kl)),
        values=Critic(device=setting.device),
        engine=WithReference(TorchEngine(device=setting.device), TorchEngine(device=setting.device)),
        strategy=ReferenceRollouts(references),
        gates=(PolicyRolloutsOnly(),),
        budget=Fixed(setting.group_size + references),
        minibatches=4,
    )
    checked = judged_by(run.envs)
    scores = Scored(RewardModel(named_model("judge", judge), setting.device)) if judge else checked
    run.rewards = (Preferred(scores, steepness), measured(run.envs))
    return run
