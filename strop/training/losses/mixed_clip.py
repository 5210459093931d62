"""ReMix's clip (2507.06892): the ratio to whoever sampled, held near where the policy before the step stands.

With r = policy / sampler and c = (policy before the step) / sampler: min(r A, clip(r, c - eps, c + eps) A). Trust is
measured from the current policy, however old an attempt is; for fresh ones c is 1, and this is PPO's clip.
Papers: remix
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics


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
            "clipped_share": batch.figure((objective != free).to(loss.dtype)),
            "clip_centre": batch.figure(centre),
        }
