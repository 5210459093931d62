"""One-token rollout (2509.26313): supervised learning as a policy gradient over single tokens drawn at each position.

Papers: otr
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.train.batch import Batch, Output
from strop.types import Metrics

_MIX = (-4658895280553007687, -7723592293110705685)  # splitmix64's multipliers as signed integers
_STEP = -7046029254386353131
_LOW_BITS = (1 << 53) - 1


@dataclass(frozen=True)
class OneToken(Loss):
    """-(1 / draws) * sum over drawn tokens of R log policy; R is 1 for the token that stands there, `miss` for others.

    Below 0 `miss` pushes down what was wrongly drawn. With miss = 0 the expected gradient is the policy's own
    probability of the right token times that of supervised learning: what it would never say it does not learn. Draws
    and `miss` are not in the sources read: ours. Which tokens are drawn depends on seed, step, attempt and position
    only, however a step is split.
    """

    draws: int = 256  # tokens drawn at each place
    miss: float = -0.1  # what a wrong token earns
    seed: int = 0  # of the draws
    weight: float = 1.0

    scope: ClassVar[str] = "attempt"

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ConfigurationError(f"OneToken needs draws >= 1, got {self.draws}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        both = output.over_logits(self._draw, self._keys(batch))  # [T, 2]
        loss = torch.where(batch.trainable, both.select(1, 0), 0.0)
        return loss, {"hit_share": batch.figure(both.select(1, 1))}

    def _draw(self, logits: Tensor, tokens: Tensor, keys: Tensor) -> Tensor:
        """Loss and share of hits at each position: [C, 2]."""
        logprobs = logits.log_softmax(-1)
        drawn = _drawn(logprobs.detach(), uniforms(keys, self.draws))  # [C, K]
        hit = drawn == tokens.unsqueeze(1)
        reward = torch.where(hit, 1.0, self.miss).to(logprobs.dtype)
        # a token of no probability is never drawn, but one of rounding's is: 0 * -inf would be NaN
        gain = reward * logprobs.gather(1, drawn).clamp(min=-1e4)
        return torch.stack([-gain.mean(1), hit.to(logprobs.dtype).mean(1)], 1)

    def _keys(self, batch: Batch) -> Tensor:
        """A random key for each token: [T]."""
        names = [f"{self.seed}/{batch.version}/{attempt}" for attempt in batch.attempt_ids]
        keys = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") for name in names]
        order = torch.arange(len(batch.tokens), device=batch.tokens.device)
        sizes = batch.attempts.bincount()
        within = order - batch.on_tokens(sizes.cumsum(0) - sizes)  # [T], from 0 in every attempt
        return batch.on_tokens(torch.tensor(keys, device=batch.tokens.device)) + (within << 32)


def uniforms(keys: Tensor, count: int) -> Tensor:
    """`count` numbers in [0, 1) for each key, by splitmix64 (Steele et al., 2014): [C, count]."""
    numbers = keys.unsqueeze(1) + _STEP * torch.arange(1, count + 1, device=keys.device)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        numbers = (numbers ^ _shifted(numbers, shift)) * factor
    numbers = numbers ^ _shifted(numbers, 31)
    return (_shifted(numbers, 11) & _LOW_BITS).double() / (1 << 53)


def _shifted(numbers: Tensor, shift: int) -> Tensor:
    """A logical shift to the right, which signed integers do not have."""
    return (numbers >> shift) & ((1 << (64 - shift)) - 1)


def _drawn(logprobs: Tensor, chances: Tensor) -> Tensor:
    """Tokens by the inverse of the cumulative distribution: [C, K]."""
    cumulated = logprobs.double().exp().cumsum(-1)
    found = torch.searchsorted(cumulated, chances * cumulated[:, -1:], right=True)
    return found.clamp(max=logprobs.shape[-1] - 1)
