"""RLCF's choice of pairs (2507.18624): those that differ most on a single item of their checklist.

Reading: the paper ranks a fixed set of pairs and keeps the first 40 %. Here pairs are made by the policy as it learns,
so each is ranked among the last ones seen, itself included. A group of more than two is judged as its widest pair.

Papers: rlcf
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.errors import ConfigurationError
from strop.filter.judges.checklist_items import widest_gap
from strop.roles import Gate
from strop.types import Group, Verdict

_SEEN = 64  # pairs


@dataclass
class WidestGap(Gate):
    """Keep a pair whose largest difference on one item is among the first `share` of the last 64 pairs; equals stay."""

    share: float = 0.4  # of the pairs
    _gaps: deque[float] = field(default_factory=lambda: deque(maxlen=_SEEN), init=False, repr=False, compare=False)

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"WidestGap needs a share above 0 and up to 1, got {self.share}")

    def __call__(self, group: Group) -> Verdict:
        gap = widest_gap(group.scored)
        self._gaps.append(gap)
        wider = sum(other > gap for other in self._gaps)
        if wider < self.share * len(self._gaps) - 1e-9:
            return Verdict(group, f"differ by {gap:.2f} on one item")
        return Verdict(None, f"{wider} of the last {len(self._gaps)} pairs differ more on one item")

    def state(self) -> dict[str, Any]:
        return {"gaps": list(self._gaps)}

    def restore(self, state: dict[str, Any]) -> None:
        self._gaps = deque(state["gaps"], maxlen=_SEEN)
