"""ThinkTuning's loss on a teacher's words (2508.07616): a weight near 1 that leans with the advantage.

Readings: the ramp of the paper; the release's bounds are the wrong way round, so that its g is -0.001 for every token.
Ratios of rare tokens are to the weights before the step, which the release asks about all tokens, the teacher's too.
Papers: thinktuning
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.surrogate import clipped
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics

_BELOW, _ABOVE = 1.0001, 0.9999  # stand for divisors below 0 and above 1


@dataclass(frozen=True)
class AdvantageAware(Loss):
    """-A * p / (sg(p) + g), g = lean * A / 4 with A held within 4: the gradient of -A * log p, times about 1.

    Tokens with A < 0 and p below `rare` get a clipped ratio in its place.
    """

    lean: float = 0.001  # largest g
    rare: float = 0.01  # probability below which nothing is pushed down without a clip
    clip: float = 0.2  # of those tokens' ratios
    weight: float = 1.0

    largest: ClassVar[float] = 4.0  # advantage
    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("proximal")})

    def __post_init__(self) -> None:
        if self.lean < 0:
            raise ConfigurationError(f"AdvantageAware needs lean >= 0, got {self.lean}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        policy, credit = output.logprobs.exp(), batch.advantages  # [T]
        divisor = policy.detach() + self.lean * credit.clamp(-self.largest, self.largest) / self.largest
        divisor = torch.where(divisor < 0, _BELOW, torch.where(divisor > 1, _ABOVE, divisor))
        divisor = divisor.clamp_min(torch.finfo(divisor.dtype).tiny)  # a probability that is rounded to 0, without g
        ratio = batch.log_ratio(output.logprobs, batch.logprobs_of("proximal")).exp()
        is_rare = (credit < 0) & (policy.detach() < self.rare)
        weighed = torch.where(is_rare, clipped(ratio, credit, self.clip, self.clip), credit * policy / divisor)
        loss = torch.where(batch.trainable, -weighed, 0.0)
        return loss, {"leaning": batch.figure(policy / divisor), "rare_share": batch.figure(is_rare.to(loss.dtype))}
