"""A loss on some tokens only: those that some weights sampled, or those that nobody did (a hint, somebody's feedback).

Papers: seele, thinktuning
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.train.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class AtTokens(Loss):
    """What `inner` says at sampled tokens, or at said ones (version -1), 0 elsewhere; it sees no others.

    All written tokens of a step keep their place in its denominator. Figures bear the name of the tokens.
    """

    inner: Loss
    sampled: bool = True  # or those that nobody sampled

    def __post_init__(self) -> None:
        if self.inner.covers != "written" or self.inner.scope != "attempt":
            raise ConfigurationError(f"AtTokens needs a loss on single written tokens, got {self.inner}")

    @property
    def weight(self) -> float:
        return self.inner.weight

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        meant = batch.trainable & ((batch.versions >= 0) == self.sampled)  # [T]
        loss, figures = self.inner(output, replace(batch, trainable=meant))
        name = "sampled" if self.sampled else "said"
        share = {f"{name}/share": batch.figure(meant.to(batch.share.dtype))}
        return loss.where(meant, loss.new_zeros(())), share | {f"{name}/{n}": value for n, value in figures.items()}
