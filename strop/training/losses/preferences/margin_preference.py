"""Pairs by how strongly others prefer one (Secrets of RLHF II, 2401.06080): flipped, softened, and with a margin.

Papers: secrets-of-rlhf-ii
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.siblings import margins, per_group
from strop.training.arithmetic.verdict_logits import VERDICTS, verdict_scores
from strop.training.batch import Batch, Output
from strop.training.requirements import Aux, Need
from strop.types import Metrics

STRENGTH = Aux("strength")  # how strongly others prefer the labelled one of a pair, and whether they are too sure


@dataclass(frozen=True)
class MarginPreference(Loss):
    """-(1 - a) log s(d - u) - a log s(u - d), d the score of the labelled better one less that of the other.

    u is what `Voted` left in `Turn.aux`: the mean difference of several reward models' scores, a constant. Where they
    are so sure of the opposite that the label must be wrong, d and u change their signs. `soft` is a where u < 0, and 0
    elsewhere; without `has_margin` u is 0 in the margin alone.
    """

    soft: float = 0.1  # how far an unsure label is from certainty
    has_margin: bool = True
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({VERDICTS, STRENGTH})
    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 <= self.soft < 0.5:
            raise ConfigurationError(f"MarginPreference needs 0 <= soft < 0.5, got {self.soft}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        scores = verdict_scores(output, batch)
        told = batch.aux.get(STRENGTH.name)
        if told is None or told.shape[1:] != (2,):
            raise ConfigurationError("MarginPreference needs the strength of preferences: need attempts of Voted")
        strength, turned = (self._of_pairs(told[:, place].to(scores.dtype), batch) for place in (0, 1))  # [G]
        side = 1 - 2 * turned  # [G], -1 where the label is wrong
        known = side * strength
        gap = side * margins(scores, batch, self) - (known if self.has_margin else 0.0)
        unsure = torch.where(known < 0, self.soft, 0.0)
        each = (1 - unsure) * functional.softplus(-gap) + unsure * functional.softplus(gap)
        loss = torch.where(batch.trainable, batch.on_tokens(each[batch.groups]), 0.0)
        agrees = (side * margins(scores, batch, self) > 0).to(scores.dtype)
        figures = {"preferred_share": agrees, "flipped_share": turned, "strength": strength}
        return loss, {name: batch.figure(batch.on_tokens(figure[batch.groups])) for name, figure in figures.items()}

    def _of_pairs(self, values: Tensor, batch: Batch) -> Tensor:
        """A number that both attempts of a pair bear at their verdict: [T] -> [G]."""
        return per_group(batch.per_attempt(values), batch) / 2
