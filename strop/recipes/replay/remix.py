"""Two updates on every rollout and rollouts of the last two policies, held near the current one; later on-policy.

Title: Squeeze the Soaked Sponge: Efficient Off-policy Reinforcement Finetuning for Large Language Model
Paper: arXiv 2507.06892 (2025)
Claim: 52.1 % with a 1.5B model from 79,000 attempts, 63.3 and 64.4 % with 7B from 7,000 and 11,000: 30 to 450 times
    fewer than others need.
Reading: The equations come from a note on the paper; its repository holds no code. The variant with groups (GRPO) in
    place of a critic: advantage is given anew in every batch. Weights of the leash and of the entropy were not found:
    0.001 each, as in the library it was built on. Reincarnation is one moment: from there on no old rollouts, and the
    reference is the policy of then; the optimizer goes on as it is, and so do two updates per rollout.
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
from strop.training.advantages.group_standard import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.entropy import Entropy
from strop.training.requirements import Logprobs, Need
from strop.training.trainers.moving_reference import MovingReference
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Metrics

# ReMix's draw (2507.06892): each place of a step falls to rollouts of the last few policies with a probability.
#
# Reading: old groups come on top of a step's new ones, in the share that the probability says, or new ones would wait
# beyond the lag. Which of the last policies is uniform, so is the choice among its groups, none of which comes twice.
# The age of a group is that of the weights it was admitted at, so that it is right with a lag, too.


@dataclass
class Mixed(Replaying):
    """New groups once, the oldest first, and before version `until` old ones, so that these are a share `old`."""

    old: float = 0.4  # share of old groups in a step, in expectation
    window: int = 2  # versions that an old group may lie behind
    until: int = 0  # from this version on there are new groups alone; 0: never
    seed: int = 0  # of the choice of old ones

    def __post_init__(self) -> None:
        if not 0 <= self.old < 1 or self.window < 1 or self.until < 0:
            raise ConfigurationError(
                f"Mixed needs 0 <= old < 1, window >= 1 and until >= 0, got {self.old}, {self.window} and {self.until}"
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
        # how many places fell to old groups before each of the new ones
        wanted = min(int(random.geometric(1 - self.old, count).sum()) - count, len(known))
        if not wanted:
            return []
        sizes = Counter(group.version for group in known)
        probabilities = np.array([1 / (len(sizes) * sizes[group.version]) for group in known])
        chosen = random.choice(len(known), wanted, replace=False, p=probabilities / probabilities.sum())
        return [known[place] for place in sorted(chosen.tolist())]


# ReMix's leash (2507.06892): a convex combination of the KL to the reference and that to the policy before the step.
#
# Reading: the precedent policy is that of the weights before the step; both are k3 on sampled tokens, as in GRPO.

_EVERY = 10  # versions between two falls of the share
_FALL = 0.1
_FLOOR = 0.5


@dataclass(frozen=True)
class KlConvex(Loss):
    """share * KL(policy || reference) + (1 - share) * KL(policy || before); the share is 1 and falls to 1/2."""

    hold: int = 50  # versions with a share of 1; then it falls by 0.1 every 10
    weight: float = 0.001  # of this loss beside others

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference"), Logprobs("proximal")})

    def __post_init__(self) -> None:
        if self.hold < 0:
            raise ConfigurationError(f"KlConvex needs hold >= 0, got {self.hold}")

    def share(self, version: int) -> float:
        """Of the reference."""
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


# ReMix's clip (2507.06892): the ratio to whoever sampled, held near where the policy before the step stands.
#
# With r = policy / sampler and c = (policy before the step) / sampler: min(r A, clip(r, c - eps, c + eps) A). Trust is
# measured from the current policy, however old a rollout is; for fresh ones c is 1, and this is PPO's clip.


@dataclass(frozen=True)
class MixedClip(Loss):
    """The ratio is the importance weight itself: no correction on top."""

    clip: float = 0.2  # a token whose ratio left c by more, in the pushed direction, gets no gradient
    weight: float = 1.0  # of this loss beside others

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
    window: int = 2,  # versions that they lie behind at most
    updates: int = 2,  # on every rollout of a batch
    reincarnation: int = 50,  # version at which the reference is reset and old rollouts end
    hold: int = 50,  # versions before the leash to the reference loosens
    kl: float = 0.001,  # weight of the leash
    entropy: float = 0.001,  # weight of the entropy, which is rewarded
) -> Run:
    """Off-policy and quick at first, on-policy and steady from `reincarnation` on."""
    policy, reference = (TorchTrainer(learning_rate=setting.learning_rate, device=setting.device) for _ in range(2))
    return setting.run(
        "remix",
        GroupStandard(),
        (MixedClip(0.2), KlConvex(hold, kl), Entropy(entropy)),
        buffer=Mixed(replayed, window, reincarnation, setting.seed),
        trainer=MovingReference(policy, reference, reincarnation, times=1),
        epochs=updates,
    )
