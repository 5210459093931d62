"""DART's success pool (2509.23866): a hard task that nobody solved this time borrows its newest success.

Reading: what was borrowed is an attempt of its own, REPLAYED, with the logprobs and versions it was sampled with, so
that it may be older than the lag and needs a correction; it moves no pass rate. A group lacks success where no reward
reaches `right`; the release asks for a mean of 0, which is the same for rewards of 0 and 1.
Papers: dart
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import Any

from strop.disk.turns import decode_turns, encode_turns
from strop.roles import Gate
from strop.types import Group, Origin, Outcome, Task, Trajectory, Verdict

_ROUNDING = 1e-6  # of a weighted sum such as 0.7 + 0.2 + 0.1
_KNOWN = 1000  # tasks whose newest success is kept, those solved last
_NOBODYS = Task((), "", "")


@dataclass
class SuccessPool(Gate):
    """Drop groups that are all right. In one without a success the oldest attempt makes room for the task's newest.

    A success has a reward of at least `right`; a task that was never solved has nothing to borrow, and is dropped too.
    """

    right: float = 1.0  # reward of a right attempt
    _newest: dict[str, Trajectory] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, group: Group) -> Verdict:
        if not group.scored:
            return Verdict(None, "no attempt counts")
        solved = [attempt for attempt in group.scored if attempt.reward >= self.right - _ROUNDING]
        if solved:
            self._keep(group.task.id, solved[-1])
            return Verdict(group) if len(solved) < len(group.scored) else Verdict(None, "every attempt is right")
        known = self._newest.get(group.task.id)
        if known is None:
            return Verdict(None, "never solved")
        members = group.scored
        members.remove(min(members, key=lambda attempt: attempt.oldest_version))
        borrowed = replace(known, id=f"{group.number}/borrowed", task=group.task, origin=Origin.REPLAYED)
        return Verdict(replace(group, trajectories=[*members, borrowed]), "borrowed a success")

    def _keep(self, task: str, success: Trajectory) -> None:
        self._newest.pop(task, None)
        self._newest[task] = replace(success, advantages=None, returns=None, values=None, notes={})
        while len(self._newest) > _KNOWN:
            del self._newest[next(iter(self._newest))]

    def state(self) -> dict[str, Any]:
        return {"newest": {task: _plain(success) for task, success in self._newest.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._newest = {task: _success(plain) for task, plain in state["newest"].items()}


def _plain(success: Trajectory) -> dict[str, Any]:
    turns = base64.b64encode(encode_turns(success.turns)).decode()
    kept = {name: getattr(success, name) for name in ("id", "reward", "rewards", "facts", "turn_rewards")}
    return {**kept, "outcome": success.outcome.value, "turns": turns}


def _success(plain: dict[str, Any]) -> Trajectory:
    """Without its task, which comes with the group that borrows it."""
    turns = decode_turns(base64.b64decode(plain["turns"]))
    return Trajectory(
        plain["id"],
        _NOBODYS,
        turns,
        Outcome(plain["outcome"]),
        reward=plain["reward"],
        rewards=plain["rewards"],
        turn_rewards=tuple(plain["turn_rewards"]),
        facts=plain["facts"],
    )
