"""ReMix: off-policy GRPO with replay of the last two policies and a convex KL; on-policy after "reincarnation".

Title: Squeeze the Soaked Sponge: Efficient Off-policy Reinforcement Finetuning for Large Language Model
Paper: arXiv 2507.06892 (2025)
Claim: 52.1 % with a 1.5B model from 79,000 rollouts, 63.3 and 64.4 % with 7B from 7,000 and 11,000: 30 to 450 times
    fewer than other methods need.
Reading: The equations come from a summary of the paper; its repository holds no code. This is the variant with groups
    (GRPO) in place of a critic: advantages are computed anew in every batch. The weights of the KL penalty and of the
    entropy bonus were not found: 0.001 each, as in the library that the paper builds on. Reincarnation happens once:
    from that version on no old rollouts are replayed and the reference is the policy of that version. The optimizer
    state and the two updates per rollout continue.
Left out: The critic of the PPO variant, and one update per rollout after reincarnation.
Acts: replayed_share > 0 and clip_centre != 1 and reference_share < 1 and reference_version > 0
    with reincarnation=2, hold=0
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.replay.memory.held_groups import Replaying
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.entropy import Entropy
from strop.training.requirements import Logprobs, Need
from strop.training.trainers.moving_reference import MovingReference
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Metrics

# ReMix's replay (2507.06892): each group of a step comes from one of the last few policies with a probability.
#
# Reading: old groups are added to a step's new ones, in the expected share, because otherwise new groups would wait
# beyond the admitted lag. The policy is sampled uniformly, and so is the group among the groups of that policy; none
# comes twice in one batch. The age of a group counts from the version it was admitted at, so it is right with a lag.


@dataclass
class MixedReplay(Replaying):
    """New groups once, oldest first, plus an expected share `old` of replayed groups before version `until`."""

    old: float = 0.4  # expected share of old groups in a step
    window: int = 2  # maximal age of an old group, in versions
    until: int = 0  # only new groups from this version on; 0: replay never ends
    seed: int = 0  # of the sampling of old groups

    def __post_init__(self) -> None:
        if not 0 <= self.old < 1 or self.window < 1 or self.until < 0:
            raise ConfigurationError(
                f"MixedReplay needs 0 <= old < 1, window >= 1 and until >= 0, got {self.old}, {self.window} and "
                f"{self.until}"
            )

    def sample(self, count: int, step: int) -> list[Group] | None:
        if len(self._held) < count:
            return None
        held = self._held
        held.old = {number: group for number, group in held.old.items() if step - group.version <= self.window}
        again = [] if 0 < self.until <= step else self._again(count, step)
        return [*held.take(count, again), *again]

    def _again(self, count: int, step: int) -> list[Group]:
        known = [group for _, group in sorted(self._held.old.items()) if group.version < step]
        random = np.random.default_rng([self.seed, step])
        # sum of geometric variables: number of old groups sampled before `count` new ones
        wanted = min(int(random.geometric(1 - self.old, count).sum()) - count, len(known))
        if not wanted:
            return []
        sizes = Counter(group.version for group in known)
        probabilities = np.array([1 / (len(sizes) * sizes[group.version]) for group in known])
        chosen = random.choice(len(known), wanted, replace=False, p=probabilities / probabilities.sum())
        return [known[place] for place in sorted(chosen.tolist())]


# ReMix's KL penalty (2507.06892): convex combination of the KL to the reference and to the policy before the step.
#
# Reading: the "precedent" policy is the policy before the step; both KLs are k3 on sampled tokens, as in GRPO.

_EVERY = 10  # versions between two decrements of the share
_FALL = 0.1
_FLOOR = 0.5


@dataclass(frozen=True)
class KlConvex(Loss):
    """share * KL(policy || reference) + (1 - share) * KL(policy || before); the share falls from 1 to 1/2."""

    hold: int = 50  # versions with a share of 1; then it falls by 0.1 every 10
    weight: float = 0.001  # of this loss in the sum

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference"), Logprobs("proximal")})

    def __post_init__(self) -> None:
        if self.hold < 0:
            raise ConfigurationError(f"KlConvex needs hold >= 0, got {self.hold}")

    def share(self, version: int) -> float:
        """Weight of the KL to the reference."""
        return max(1 - _FALL * math.ceil(max(version - self.hold, 0) / _EVERY), _FLOOR)

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        share = self.share(batch.version)
        far = batch.log_ratio(output.logprobs, batch.logprobs_of("reference"))  # [T]
        near = batch.log_ratio(output.logprobs, batch.logprobs_of("proximal"))  # [T]
        loss = torch.where(batch.trainable, share * _k3(far) + (1 - share) * _k3(near), 0.0)
        return loss, {
            "reference_kl": batch.metric(far),
            "reference_share": batch.metric(torch.full_like(far, share)),
        }


def _k3(distance: Tensor) -> Tensor:
    return torch.expm1(-distance) + distance


# ReMix's clipping (2507.06892): the behavior ratio, clipped around the ratio of the policy before the step.
#
# With r = policy / sampler and c = (policy before the step) / sampler: min(r A, clip(r, c - eps, c + eps) A). The trust
# region is centred at the current policy, however old a rollout is; for fresh rollouts c = 1, and this is PPO's clip.


@dataclass(frozen=True)
class MixedClip(Loss):
    """PPO clipping centred at the current policy; the ratio already contains the importance weight."""

    clip: float = 0.2  # clip range around c
    weight: float = 1.0  # of this loss in the sum

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("proximal")})
    anchor: ClassVar[str] = "behavior"
    contains_ratio: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.clip <= 0:
            raise ConfigurationError(f"MixedClip needs clip > 0, got {self.clip}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs).exp()  # [T]
        centre = batch.log_ratio(batch.logprobs_of("proximal"), batch.behavior_logprobs).exp()  # [T]
        free = ratio * batch.advantages  # [T]
        held = ratio.clamp(centre - self.clip, centre + self.clip) * batch.advantages  # [T]
        objective = torch.minimum(free, held)
        loss = torch.where(batch.trainable, -objective, 0.0)
        return loss, {
            "clipped_share": batch.metric((objective != free).to(loss.dtype)),
            "clip_centre": batch.metric(centre),
        }


def remix(
    setting: Setting = Setting(),
    replayed: float = 0.4,  # share of rollouts of earlier policies
    window: int = 2,  # their maximal age in versions
    updates: int = 2,  # passes over a batch
    reincarnation: int = 50,  # version at which the reference is reset and replay ends
    hold: int = 50,  # versions before the share of the KL to the reference falls
    kl: float = 0.001,  # weight of the KL penalty
    entropy: float = 0.001,  # weight of the entropy bonus
) -> Run:
    """Off-policy for sample efficiency at first, on-policy for stability from version `reincarnation` on."""
    policy, reference = (TorchTrainer(learning_rate=setting.learning_rate, device=setting.device) for _ in range(2))
    return setting.run(
        "remix",
        GroupStandard(),
        (MixedClip(0.2), KlConvex(hold, kl), Entropy(entropy)),
        buffer=MixedReplay(replayed, window, reincarnation, setting.seed),
        trainer=MovingReference(policy, reference, reincarnation, times=1),
        epochs=updates,
    )
