"""Success of rollouts and groups: the evidence for a task's difficulty.

One reward of the run says how right a rollout is (`Reward.grades`); scoring keeps that as the fact `success`. Parts
that cannot work without it declare `needs_success`, and are refused before the run where no reward grades.
"""

from __future__ import annotations

from collections.abc import Sequence

from strop.errors import ConfigurationError
from strop.stats.task_lineage import is_written
from strop.types import Group, Outcome, Rollout, Task

SURVIVAL = "survival"  # fact: probability that a rollout was played to its end, where that was random
ROUNDING = 1e-6  # of rewards, which are weighted sums: 0.7 + 0.2 + 0.1 is less than 1


def reaches(value: float, least: float = 1.0) -> bool:
    """Whether a number is at least `least`, up to rounding."""
    return value >= least - ROUNDING


def success(rollout: Rollout) -> float:
    """How right a rollout is, from 0 to 1, in a run whose rewards say so."""
    if rollout.success is None:
        raise ConfigurationError(f"no reward says how right rollout {rollout.id} is: see `Reward.grades`")
    return rollout.success


def is_right(rollout: Rollout, least: float = 1.0) -> bool:
    """Whether its success is known and at least `least`."""
    return rollout.success is not None and reaches(rollout.success, least)


def kind(task: Task) -> str:
    """Key of similar tasks: environment and level; generated tasks have a kind of their own."""
    return f"{task.source}:{task.level}" + (":written" if is_written(task) else "")


def successes(group: Group) -> tuple[float, float]:
    """Number of right rollouts among the policy's own whose success is known, and the number of these.

    A rollout that was played to its end with probability 1/3 counts three times, which corrects for abandoned ones.
    """
    known = [(1 / each.facts.get(SURVIVAL, 1.0), each.success) for each in group.own if each.success is not None]
    return sum(weight * value for weight, value in known), sum(weight for weight, _ in known)


def is_lost(rollouts: Sequence[Rollout]) -> bool:
    """Whether no scored rollout has any success, and at least one of them finished."""
    scored = [rollout for rollout in rollouts if rollout.is_scored]
    is_finished = any(rollout.outcome is Outcome.FINISHED for rollout in scored)
    return is_finished and all(rollout.success is not None and rollout.success <= ROUNDING for rollout in scored)
