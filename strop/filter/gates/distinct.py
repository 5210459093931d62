"""Expert iteration's de-duplication (2403.04642): the same way to an answer counts once, or easy tasks drown the rest.

Papers: expert-iteration
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from strop.roles import Gate
from strop.types import Group, Trajectory, Verdict

# a whole chain such as (12+3)*4-30; possessive and from the start of a number, so that no text takes long to read
_NUMBER = r"\d++(?:\.\d++)?"
_CHAIN = re.compile(rf"(?<![\d.(])\(*+{_NUMBER}\)*+(?:\s*+[-+*/]\s*+\(*+-?{_NUMBER}\)*+)++")


@dataclass(frozen=True)
class Distinct(Gate):
    """Keep the first of the attempts that made the same sequence of calculations, or said the same where there is none.

    Duplicates from earlier rounds are a buffer's question, not this gate's.
    """

    def __call__(self, group: Group) -> Verdict:
        first: dict[tuple[str, ...], Trajectory] = {}
        for attempt in group.scored:
            first.setdefault(way(attempt), attempt)
        kept = list(first.values())
        if not kept:
            return Verdict(None, "no attempt counts")
        return Verdict(replace(group, trajectories=kept), f"kept {len(kept)} of {len(group.trajectories)} attempts")


def way(attempt: Trajectory) -> tuple[str, ...]:
    """The calculations of all turns in their order, each as a whole and without spaces; else the replies themselves."""
    replies = [turn.message.content for turn in attempt.turns]
    calculations = [re.sub(r"\s", "", found) for reply in replies for found in _CHAIN.findall(reply)]
    return tuple(calculations or replies)
