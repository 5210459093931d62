"""AAPO: GRPO advantages plus the lead of each rollout over a paired rollout of the reference policy.

Title: AAPO: Enhance the Reasoning Capabilities of LLMs with Advantage Momentum
Paper: arXiv 2505.14264 (2025)
Claim: Groups whose advantage is near 0 train, too, and mathematics benchmarks rise above GRPO's.
Reading: The paper's momentum is not a moving average: it is the lead over one sample of the reference policy. Policy
    and reference rollouts are paired by their order.
Acts: share/teacher > 0 and advantage_beside_rewards > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.concurrency import together
from strop.control.budgets.fixed import Fixed
from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.rollout_limits import REFERENCE
from strop.recipes.setting import Setting
from strop.roles import Advantage, Gate, Player, Strategy
from strop.run import Run
from strop.training.losses.reinforce import Reinforce
from strop.types import GateResult, Group, Origin, Rollout, Start

# AAPO's pairing (2505.14264): each rollout stores the reward of its reference rollout, which is then dropped.


@dataclass(frozen=True)
class PairedWithReference(Gate):
    """Gate that pairs policy and reference rollouts by position and stores the partner's reward as fact `reference`.

    All reference rollouts are dropped. A policy rollout whose partner is not scored has no such fact; it stays, for the
    mean and standard deviation of its group.
    """

    def __call__(self, group: Group) -> GateResult:
        own = [rollout for rollout in group.rollouts if rollout.origin is not Origin.TEACHER]
        theirs = [rollout for rollout in group.rollouts if rollout.origin is Origin.TEACHER]
        known = {mine.id: other.reward for mine, other in zip(own, theirs, strict=False) if other.is_scored}
        kept = [_with_reference_reward(mine, known.get(mine.id)) for mine in own if mine.is_scored]
        pairs = sum(mine.id in known for mine in kept)
        if not pairs:
            return GateResult(
                None, f"{len(own)} rollouts of the policy and {len(theirs)} of the reference make no pair"
            )
        reason = f"kept {len(kept)} rollouts, {pairs} of them with the reference's reward"
        return GateResult(replace(group, rollouts=kept), reason)


def _with_reference_reward(mine: Rollout, reference: float | None) -> Rollout:
    return mine if reference is None else replace(mine, facts=mine.facts | {"reference": reference})


# AAPO's rollouts (2505.14264): one rollout of the initial model for each rollout of the policy, at the same task.


@dataclass(frozen=True)
class WithReferenceRollouts(Strategy):
    """Strategy: half of the rollouts from the policy, half from the reference; needs the engine `WithReference`."""

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        half = len(starts) // 2
        if len(starts) != 2 * half or not half:
            raise ConfigurationError(
                f"WithReferenceRollouts pairs rollouts and needs an even number per group, got {len(starts)}"
            )
        theirs = [replace(each, policy_name=REFERENCE, origin=Origin.TEACHER) for each in starts[half:]]
        return await together(play(start) for start in (*starts[:half], *theirs))


# AAPO's advantage (2505.14264): GRPO's, plus each rollout's lead over the initial model at the same task.
#
# The paper's loss, cross-entropy weighted by this advantage, is `Reinforce`.


@dataclass(frozen=True)
class ReferenceMomentum(Advantage):
    """A = (r - mean) / (std + epsilon) + clip(r - reference's r, low, high); groups without contrast still train.

    The strategy `WithReferenceRollouts` and the gate `PairedWithReference` make the pairs and store the reference's
    reward as a fact. A rollout whose partner failed has no such fact and no second term.
    """

    low: float = -0.2  # lower bound of the lead over the reference
    high: float = 0.28  # upper bound of the lead over the reference
    epsilon: float = 1e-4

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            if group.scored and not any("reference" in rollout.facts for rollout in group.scored):
                raise ConfigurationError(
                    f"ReferenceMomentum found no reference rewards in group {group.number}: add the gate "
                    "PairedWithReference"
                )
            rewards = np.array([rollout.reward for rollout in group.scored], dtype=np.float64)
            rewards = rewards - rewards[:1]
            std = rewards.std(ddof=1) if len(rewards) > 1 else 0.0
            for rollout, reward in zip(group.scored, rewards, strict=True):
                rollout.set_advantage(float((reward - rewards.mean()) / (std + self.epsilon)) + self._lead(rollout))

    def _lead(self, rollout: Rollout) -> float:
        expected = rollout.facts.get("reference", rollout.reward)
        return float(np.clip(rollout.reward - expected, self.low, self.high))


def aapo(
    setting: Setting = Setting(),
    low: float = -0.2,  # lower bound of the lead over the reference
    high: float = 0.28,  # upper bound of the lead over the reference
) -> Run:
    """Cross-entropy weighted by the advantage, token mean, no ratio; reference rollouts double the generation cost."""
    return setting.run(
        "aapo",
        ReferenceMomentum(low, high),
        (Reinforce(),),
        engine=WithReference(TorchEngine(device=setting.device), TorchEngine(device=setting.device)),
        strategy=WithReferenceRollouts(),
        gates=(PairedWithReference(),),
        budget=Fixed(2 * setting.group_size),
    )
