"""A loss on some of what was written: rollouts of some origins, tokens that were sampled, or those that nobody sampled.

Demonstrations are imitated, hinted rollouts weighed by their own rule, and a hint within a completion is not
reinforced. Papers: seele, thinktuning
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics, Origin


@dataclass(frozen=True)
class Among(Loss):
    """What `inner` says at tokens of rollouts of these origins, or at such tokens, 0 elsewhere; it sees no others.

    All written tokens of a step keep their place in its denominator. Metrics bear the origins' names, or `sampled` or
    `said`.
    """

    inner: Loss
    origins: tuple[Origin, ...] = ()  # whose rollouts it is about; none: all
    sampled: bool | None = None  # tokens that some weights sampled, or (False) those that nobody did; None: both

    def __post_init__(self) -> None:
        is_about_some = bool(self.origins) or self.sampled is not None
        if not is_about_some or self.inner.covers != "written":
            raise ConfigurationError(f"Among needs at least 1 origin and a loss on what was written, got {self}")
        if self.sampled is not None and self.inner.scope != "rollout":
            raise ConfigurationError(f"Among needs a loss on single tokens where it tells them apart, got {self.inner}")

    @property
    def weight(self) -> float:
        return self.inner.weight

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        meant = batch.trainable  # [T]
        if self.origins:
            meant = meant & batch.on_tokens(batch.is_of(*self.origins))
        if self.sampled is not None:
            meant = meant & ((batch.versions >= 0) == self.sampled)
        loss, metrics = self.inner(output, replace(batch, trainable=meant))
        share = {f"{self._name}/share": batch.metric(meant.to(batch.share.dtype))}
        return loss.where(meant, loss.new_zeros(())), share | {f"{self._name}/{n}": v for n, v in metrics.items()}

    @property
    def _name(self) -> str:
        kinds = [] if self.sampled is None else ["sampled" if self.sampled else "said"]
        return "+".join([*(origin.value for origin in self.origins), *kinds])
