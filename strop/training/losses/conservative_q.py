"""B-Coder's second stage (2310.03173): the policy's own logits learn to be the shape of Q.

Q(s, a) = alpha * (z(s, a) - max z(s, .)) + V(s), z the policy's logits and V the frozen value of the first stage. It is
backed up with the action that the first policy, the reference, likes best; on demonstrations the first term, which is
never positive, is pulled to 0, beside plain imitation. Reading: the paper's second value head, which begins at 0 and
learns with z, is left out.
Papers: b-coder
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.siblings import following, is_taught
from strop.training.batch import Batch, Output
from strop.training.requirements import Logits, Need
from strop.types import Metrics


@dataclass(frozen=True)
class ConservativeQ(Loss):
    """(r_t + discount * sg Q(s_(t+1), the reference's favourite) - Q(s_t, a_t))^2, nothing after the end.

    The attempt's reward stands on its last token. Demonstrations add `advantage` * alpha * (max z - z) and `imitation`
    * -log policy per token.
    """

    alpha: float = 1.0  # scale of the logits in Q
    discount: float = 1.0  # from token to token
    advantage: float = 0.1  # weight of what demonstrated tokens lack to the likeliest
    imitation: float = 0.5  # weight of demonstrations' cross-entropy
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logits("reference")})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        if batch.values is None:
            raise ConfigurationError("ConservativeQ needs the values of its first stage: set values=Conservative(...)")
        gaps = self.alpha * output.over_both(_gaps, "reference", batch.temperature)  # [T, 2]
        own, favourite = gaps.select(1, 0), gaps.select(1, 1)
        goals = _paid(batch) + self.discount * following((favourite + batch.values).detach(), batch)
        errors = (goals - own - batch.values).square()
        taught = batch.on_tokens(is_taught(batch)) & batch.trainable
        shown = torch.where(taught, -self.advantage * own - self.imitation * output.logprobs, 0.0)
        loss = torch.where(batch.trainable, errors + shown, 0.0)
        return loss, {"q_error": batch.figure(errors), "q_gap": batch.figure(own)}


def _gaps(policy: Tensor, reference: Tensor, tokens: Tensor, temperature: Tensor) -> Tensor:
    """z - max z of the token and of the reference's favourite, before division by the temperature: [C, 2]."""
    raw = policy * temperature.unsqueeze(1).to(policy.dtype)
    asked = torch.stack([tokens, reference.argmax(1)], 1)
    return raw.gather(1, asked) - raw.max(1, keepdim=True).values


def _paid(batch: Batch) -> Tensor:
    """The attempt's reward at its last written token, 0 elsewhere: [T]."""
    goes_on = following(torch.ones_like(batch.share), batch)
    return torch.where(batch.trainable & (goes_on == 0), batch.on_tokens(batch.rewards).to(batch.share.dtype), 0.0)
