"""A frozen model steered by a value at every token: Q# (2502.20548), the optimum under a KL penalty, and VAS
(2405.06639), its linear cousin.

Reading: `strength` is 1 / kappa, as in Q#'s code; the paper's eta is its inverse.
Papers: q-sharp, vas
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus


def bernoulli_offset(logits: Tensor, strength: float) -> Tensor:
    """Q#: log(1 - p + p e^strength) = kappa-scaled log E[exp(Z / kappa)] of a 0/1 return with p = sigmoid(logits)."""
    return softplus(strength + logits) - softplus(logits)


def categorical_offset(logprobs: Tensor, atoms: Tensor, strength: float) -> Tensor:
    """Q#: log E[exp(strength * Z)] of a return with these atoms: [..., K], [K] -> [...]."""
    return torch.logsumexp(logprobs + strength * atoms, -1)


def linear_offset(values: Tensor, strength: float) -> Tensor:
    """VAS: strength * (V - mean V over the candidates), so that no mass moves between them and the rest: [..., C]."""
    return strength * (values - values.mean(-1, keepdim=True))


def guided(base: Tensor, candidates: Tensor, offsets: Tensor, is_centred: bool) -> Tensor:
    """Base logits [V] with the candidates' offsets [C] added; uncentred ones are first lowered to a least of 0."""
    moved = offsets if is_centred else offsets - offsets.min()
    return base.index_add(0, candidates, moved.to(base.dtype))
