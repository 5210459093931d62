"""A loss on attempts of some origins only: demonstrations are imitated, hinted attempts weighed by their own rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.train.batch import Batch, Output
from strop.types import Metrics, Origin


@dataclass(frozen=True)
class Among(Loss):
    """What `inner` says at tokens of attempts of these origins, 0 elsewhere; it sees no others.

    All written tokens of a step keep their place in its denominator. Figures bear the origins' names.
    """

    inner: Loss
    origins: tuple[Origin, ...]  # whose attempts it is about

    def __post_init__(self) -> None:
        if not self.origins or self.inner.covers != "written":
            raise ConfigurationError(f"Among needs at least 1 origin and a loss on what was written, got {self}")

    @property
    def weight(self) -> float:
        return self.inner.weight

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        meant = batch.trainable & batch.on_tokens(batch.is_of(*self.origins))  # [T]
        loss, figures = self.inner(output, replace(batch, trainable=meant))
        names = "+".join(origin.value for origin in self.origins)
        share = {f"{names}/share": batch.figure(meant.to(batch.share.dtype))}
        return loss.where(meant, loss.new_zeros(())), share | {f"{names}/{n}": value for n, value in figures.items()}
