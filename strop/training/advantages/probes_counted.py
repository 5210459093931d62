"""REX-RAG's share of probes (2508.08149): over the whole draw, told to every turn for the loss that mixes by it.

Over a group of five and one probe it would be 1/6: its plain attempts would begin at the ratio 1.2, which is the bound
of the clip, and with two probes beyond it, so that the right ones would teach nothing.
Papers: rex-rag
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.roles import Advantage
from strop.training.requirements import PROBES
from strop.types import Group, Origin


@dataclass(frozen=True)
class ProbesCounted(Advantage):
    """What `inner` gives, and on every turn the share of probes; they are BRANCHED. Without a token nothing counts."""

    inner: Advantage

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        probes = sum(attempt.origin is Origin.BRANCHED for attempt in attempts)
        share = np.array([probes / max(len(attempts), 1)], np.float32)  # one row for a whole turn
        for attempt in attempts:
            attempt.turns = tuple(replace(turn, aux={**turn.aux, PROBES.name: share}) for turn in attempt.turns)
