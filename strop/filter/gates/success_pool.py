"""DART's success pool (2509.23866): a hard task that nobody solved this time borrows its newest success.

Reading: what was borrowed has the logprobs and versions it was sampled with, so that it may be older than the lag and
needs a correction. A group lacks success where no reward reaches `right`; the release asks for a mean of 0, which is
the same for rewards of 0 and 1.
Papers: dart
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from strop.filter.gates.support.success_cache import Lending, lent
from strop.roles import Gate
from strop.success import is_right
from strop.types import Group, Verdict


@dataclass
class SuccessPool(Gate):
    """Drop groups that are all right. In one without a success the oldest attempt makes room for the task's newest.

    A success has a reward of at least `right`; a task that was never solved has nothing to borrow, and is dropped too.
    """

    right: float = 1.0  # reward of a right attempt
    _lending: Lending = field(default_factory=Lending, init=False, repr=False, compare=False)

    def __call__(self, group: Group) -> Verdict:
        if not group.scored:
            return Verdict(None, "no attempt counts")
        solved = [attempt for attempt in group.scored if is_right(attempt.reward, self.right)]
        if solved:
            self._lending.keep(group.task.id, solved)
            return Verdict(group) if len(solved) < len(group.scored) else Verdict(None, "every attempt is right")
        known = self._lending.known(group.task.id)
        if not known:
            return Verdict(None, "never solved")
        members = group.scored
        members.remove(min(members, key=lambda attempt: attempt.oldest_version))
        return Verdict(replace(group, trajectories=[*members, lent(known[-1], group)]), "borrowed a success")

    def state(self) -> dict[str, Any]:
        return {"newest": self._lending.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._lending.restore(state["newest"])
