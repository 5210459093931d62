"""Q#'s guidance (2502.20548): the optimum under a KL penalty to the model, for a return of 0 or 1.

Reading: `strength` is 1 / kappa, as in the code; the paper's eta is its inverse.
Papers: q-sharp
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import softplus

from strop.generate.guided_decoding import Guidance


@dataclass(frozen=True)
class QSharp(Guidance):
    """Adds log(1 - p + p e^strength) to candidates, p the chance of success, lowered to a least of 0.

    That is log E[exp(strength * return)] with the logit of p told.
    """

    strength: float = 10.0  # 1 / kappa

    file: ClassVar[str] = "success_weights.safetensors"

    def __call__(self, base: Tensor, candidates: Tensor, told: Tensor) -> Tensor:
        offsets = softplus(self.strength + told) - softplus(told)  # [C]
        return base.index_add(0, candidates, (offsets - offsets.min()).to(base.dtype))
