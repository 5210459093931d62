"""Dead-end analysis's rectified policy (2302.14003): no token is likelier than the chance that it leads to no dead end.

Reading: the cap holds after probabilities add up to 1 again, as the paper's bound has it; the release caps twice and
ends above it. Tokens under their cap keep their proportions to each other.
Papers: dead-end
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.generate.guided_decoding import Guidance

_LEAST = 1e-7  # of a cap


@dataclass(frozen=True)
class Capped(Guidance):
    """min(s * p, cap) with the one s for which they add up to 1; cap = 1 + Q - margin of a candidate, 1 of others.

    Where even all caps together are less than 1, candidates have their caps in proportion.
    """

    margin: float = 0.1  # below what the value allows

    file: ClassVar[str] = "dead_end_weights.safetensors"

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise ConfigurationError(f"Capped needs a margin of at least 0 and below 1, got {self.margin}")

    def __call__(self, base: Tensor, candidates: Tensor, told: Tensor) -> Tensor:
        caps = torch.ones(len(base), dtype=torch.float64, device=base.device)
        caps[candidates] = (1 + told.double() - self.margin).clamp(_LEAST, 1.0)
        return capped(base.double().softmax(-1), caps).log().to(base.dtype)


def capped(chances: Tensor, caps: Tensor) -> Tensor:
    """The distribution with every probability at its cap or at s times what it was: [V].

    Tokens reach their caps in the order of cap / p; s is found by going through them once.
    """
    if float(caps.sum()) <= 1:
        return caps / caps.sum()
    order = torch.argsort(caps / chances)
    taken = caps[order].cumsum(0)  # if the first k + 1 are at their caps
    left = 1 - torch.cat([taken.new_zeros(1), taken[:-1]])  # for those that are not, if the first k are
    rest = chances[order].flip(0).cumsum(0).flip(0)  # [V], of those from k on
    scale = left / rest
    free = int((scale * chances[order] <= caps[order]).to(torch.int8).argmax())  # the first that stays below its cap
    return torch.minimum(chances * scale[free], caps)
