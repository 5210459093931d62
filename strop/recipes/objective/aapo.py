"""Beside each rollout one of the model training began with; being ahead of it counts.

Title: AAPO: Enhance the Reasoning Capabilities of LLMs with Advantage Momentum
Paper: arXiv 2505.14264 (2025)
Claim: Groups whose credit is near 0 train, too, and mathematics benchmarks rise above GRPO's.
Reading: The paper's momentum is no moving average: it is the lead over one sample of the reference. Rollouts and
    samples are paired by their order.
Acts: share/teacher > 0 and credit_beside_rewards > 0
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
from strop.generate.interfaces import Player
from strop.generate.policy_names import REFERENCE
from strop.recipes.setting import Setting
from strop.roles import Advantage, Gate, Strategy
from strop.run import Run
from strop.training.losses.reinforce import Reinforce
from strop.types import GateResult, Group, Origin, Rollout, Start

# AAPO's comparison (2505.14264): each rollout keeps the reward of the reference's rollout, which is then let go.


@dataclass(frozen=True)
class PairedWithReference(Gate):
    """Pair the policy's rollouts with the reference's by their places; the fact `reference` is the partner's reward.

    All rollouts of the reference are let go. One of the policy's whose partner does not count has no such fact, and
    stays for the mean and spread of its group.
    """

    def __call__(self, group: Group) -> GateResult:
        own = [rollout for rollout in group.rollouts if rollout.origin is not Origin.TEACHER]
        theirs = [rollout for rollout in group.rollouts if rollout.origin is Origin.TEACHER]
        known = {mine.id: other.reward for mine, other in zip(own, theirs, strict=False) if other.is_scored}
        kept = [_beside(mine, known.get(mine.id)) for mine in own if mine.is_scored]
        pairs = sum(mine.id in known for mine in kept)
        if not pairs:
            return GateResult(
                None, f"{len(own)} rollouts of the policy and {len(theirs)} of the reference make no pair"
            )
        reason = f"kept {len(kept)} rollouts, {pairs} of them with the reference's reward"
        return GateResult(replace(group, rollouts=kept), reason)


def _beside(mine: Rollout, reference: float | None) -> Rollout:
    return mine if reference is None else replace(mine, facts=mine.facts | {"reference": reference})


# AAPO's rollouts (2505.14264): for each of the policy's one by the model it began as, at the same task.


@dataclass(frozen=True)
class BesideReference(Strategy):
    """The first half of the starts is the policy's, the second the reference's; needs the engine `WithReference`."""

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        half = len(starts) // 2
        if len(starts) != 2 * half or not half:
            raise ConfigurationError(
                f"BesideReference pairs rollouts: need an even number per group, got {len(starts)}"
            )
        theirs = [replace(each, policy_name=REFERENCE, origin=Origin.TEACHER) for each in starts[half:]]
        return await together(play(start) for start in (*starts[:half], *theirs))


# AAPO's advantage (2505.14264): GRPO's, plus how far each rollout is ahead of the model training began with.
#
# The paper's "momentum" is no moving average: it is the improvement over one sample of the reference model at the same
# task. Its loss, cross-entropy weighted by this advantage, is `Reinforce`.


@dataclass(frozen=True)
class ReferenceMomentum(Advantage):
    """A = (r - mean) / (std + epsilon) + clip(r - reference's r, low, high); a group without contrast still trains.

    The strategy `BesideReference` and the gate `PairedWithReference` make the pairs and leave the reference's reward as
    a fact; a rollout whose partner failed has none, and no second term.
    """

    low: float = -0.2  # of the lead over the reference, which is cut there
    high: float = 0.28  # of the lead over the reference
    epsilon: float = 1e-4

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            if group.scored and not any("reference" in rollout.facts for rollout in group.scored):
                raise ConfigurationError(
                    f"ReferenceMomentum needs the reference's reward for rollouts of group {group.number}: add the "
                    "gate PairedWithReference"
                )
            rewards = np.array([rollout.reward for rollout in group.scored], dtype=np.float64)
            rewards = rewards - rewards[:1]
            spread = rewards.std(ddof=1) if len(rewards) > 1 else 0.0
            for rollout, reward in zip(group.scored, rewards, strict=True):
                rollout.set_advantage(float((reward - rewards.mean()) / (spread + self.epsilon)) + self._ahead(rollout))

    def _ahead(self, rollout: Rollout) -> float:
        expected = rollout.facts.get("reference", rollout.reward)
        return float(np.clip(rollout.reward - expected, self.low, self.high))


def aapo(
    setting: Setting = Setting(),
    low: float = -0.2,  # of the lead over the reference, which is cut there
    high: float = 0.28,  # of the lead over the reference
) -> Run:
    """Cross-entropy weighted by the advantage, token mean, no ratio; the reference doubles what is generated."""
    return setting.run(
        "aapo",
        ReferenceMomentum(low, high),
        (Reinforce(),),
        engine=WithReference(TorchEngine(device=setting.device), TorchEngine(device=setting.device)),
        strategy=BesideReference(),
        gates=(PairedWithReference(),),
        budget=Fixed(2 * setting.group_size),
    )
