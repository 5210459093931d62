"""Groups of a given task and version, for samplers and pass-rate estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.types import Group, Task
from tests.building import make_group


def seen(
    task: Task,
    rewards: Sequence[float],
    number: int = 0,
    version: int = 0,
    failed: Sequence[int] = (),
    pruned: Sequence[int] = (),
) -> Group:
    """One rollout per reward at this task, admitted as `number` under weights `version`."""
    return replace(make_group(rewards, number=number, failed=failed, pruned=pruned), task=task, version=version)
