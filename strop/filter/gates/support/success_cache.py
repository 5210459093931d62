"""Per-task cache of recent successful rollouts, for gates that add one to a later group of the task.

An added success is marked REPLAYED, keeps the tokens and logprobs it was sampled with, and counts in no pass rate.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strop.storage.ledger.turn_bytes import decode_turns, encode_turns
from strop.types import Group, Origin, Outcome, Rollout, Task

_KNOWN = 1000  # tasks whose successes are kept, those solved last
_NOBODYS = Task((), "", "")


@dataclass
class Lending:
    """Last `size` successes of each task, the oldest first."""

    size: int = 1
    by_task: dict[str, list[Rollout]] = field(default_factory=dict)

    def keep(self, task: str, successes: Sequence[Rollout]) -> None:
        """Nothing of their first group and training is kept."""
        kept = [*self.by_task.pop(task, []), *map(_untrained, successes)][-self.size :]
        self.by_task |= {task: kept} if kept else {}
        while len(self.by_task) > _KNOWN:
            del self.by_task[next(iter(self.by_task))]

    def known(self, task: str) -> list[Rollout]:
        return self.by_task.get(task, [])

    def state(self) -> dict[str, Any]:
        return {task: [_plain(success) for success in kept] for task, kept in self.by_task.items()}

    def restore(self, state: dict[str, Any]) -> None:
        self.by_task = {task: [_success(plain) for plain in kept] for task, kept in state.items()}


def as_borrowed(success: Rollout, group: Group) -> Rollout:
    """A copy for this group."""
    return replace(success, id=f"{group.number}/borrowed", task=group.task, origin=Origin.REPLAYED)


def _untrained(success: Rollout) -> Rollout:
    return replace(
        success, parent="", comparison_group="", advantages=None, returns=None, values=None, policy_statistics={}
    )


def _plain(success: Rollout) -> dict[str, Any]:
    turns = base64.b64encode(encode_turns(success.turns)).decode()
    kept = {name: getattr(success, name) for name in ("id", "reward", "rewards", "facts", "turn_rewards")}
    return {**kept, "outcome": success.outcome.value, "turns": turns}


def _success(plain: dict[str, Any]) -> Rollout:
    """Without its task, which comes with the group that borrows it."""
    turns = decode_turns(base64.b64decode(plain["turns"]))
    return Rollout(
        plain["id"],
        _NOBODYS,
        turns,
        Outcome(plain["outcome"]),
        reward=plain["reward"],
        rewards=plain["rewards"],
        turn_rewards=tuple(plain["turn_rewards"]),
        facts=plain["facts"],
    )
