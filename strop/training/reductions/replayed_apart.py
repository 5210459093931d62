"""Groups that are trained on again are averaged apart from the new ones: L(new) + L(replayed) (SPEAR, 2509.22601).

Papers: spear
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.roles import Reduction
from strop.types import FloatArray, Group


@dataclass(frozen=True)
class ReplayedApart(Reduction):
    """`inner` over the groups that are new, and once more over the others: more of these do not thin out the new."""

    inner: Reduction

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        new = [group for group in groups if group.times_trained <= 1]
        again = [group for group in groups if group.times_trained > 1]
        return {**self.inner(new), **self.inner(again)}
