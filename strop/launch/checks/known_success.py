"""Check that a reward says which rollouts are right, where a part of the run must know it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from strop.capabilities import inside, parts
from strop.roles import Reward
from strop.run import Run


@runtime_checkable
class NeedsSuccess(Protocol):
    """Part that must know which rollouts are right."""

    @property
    def needs_success(self) -> bool: ...


def problems(run: Run) -> list[str]:
    """Parts that must know which rollouts are right, in a run whose rewards do not say."""
    needing = [part for _, part in parts(run) if isinstance(part, NeedsSuccess) and part.needs_success]
    asking = dict.fromkeys(type(part).__name__ for part in needing)
    if not asking or any(reward.grades for reward in inside(run.rewards, Reward)):
        return []
    return [
        f"{', '.join(asking)} must know which rollouts are right, and no reward says so: give the range of your "
        "reward's scores, from wrong to right, with reward_range=LOW,HIGH or below the function as NAME.low = LOW and "
        "NAME.high = HIGH; or bring tasks with answers"
    ]
