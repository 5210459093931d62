"""Loss restricted to rollouts of some origins, to sampled tokens, or to tokens that no policy sampled.

Uses: demonstrations are imitated, hinted rollouts have their own weights, and a hint within a completion is not
reinforced.
Papers: seele, thinktuning
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
    """`inner` at tokens of rollouts of these origins, or at such tokens, 0 elsewhere; it sees no others.

    The step's denominator still counts all completion tokens. Metrics have the origins' names, or `sampled` or `said`.
    """

    inner: Loss
    origins: tuple[Origin, ...] = ()  # origins of the rollouts it covers; none: all
    sampled: bool | None = None  # only tokens with a version (True), only those without one (False), or both (None)

    def __post_init__(self) -> None:
        is_about_some = bool(self.origins) or self.sampled is not None
        if not is_about_some or self.inner.covers != "written":
            raise ConfigurationError(f"Among needs at least 1 origin and a loss on completion tokens, got {self}")
        if self.sampled is not None and self.inner.scope != "rollout":
            raise ConfigurationError(
                f"Among needs a loss on single tokens to restrict it to some tokens, got {self.inner}"
            )

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
