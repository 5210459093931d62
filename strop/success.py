"""What counts as evidence of how hard a task is."""

from __future__ import annotations

from collections.abc import Sequence

from strop.stats.task_lineage import is_written
from strop.types import Group, Outcome, Task, Trajectory

SURVIVAL = "survival"  # the fact of how likely an attempt was to be played to its end, where chance decided that
RESTART = "restart"  # the fact of how an attempt begins: 1 within a right one, -1 within a wrong one, 0 at the prompt
EXIT = "exit"  # the fact of how many tokens were thought before an answer was forced
PLAIN = "plain_tokens"  # the fact of how long the first model's plain attempt at the same task was
ROUNDING = 1e-6  # of rewards, which are weighted sums: 0.7 + 0.2 + 0.1 is less than 1


def is_right(mark: float, least: float = 1.0) -> bool:
    """Whether what was paid is at least `least`, but for rounding."""
    return mark >= least - ROUNDING


def paid(attempt: Trajectory) -> float:
    """By the world, which paid at once or was asked, whatever other rewards added; by all where it was not asked."""
    by_world = [attempt.rewards[name] for name in ("outcome", "checked") if name in attempt.rewards]
    return by_world[0] if by_world else attempt.reward


def kind(task: Task) -> str:
    """What tasks are alike: world and level; those that were written during the run are a kind of their own."""
    return f"{task.source}:{task.level}" + (":written" if is_written(task) else "")


def success(attempt: Trajectory) -> float:
    """How right an attempt was, from 0 to 1."""
    return min(max(paid(attempt), 0.0), 1.0)


def successes(group: Group) -> tuple[float, float]:
    """How many of the policy's own attempts were right, and how many there were.

    One that was played to its end with probability 1/3 stands for three: those that were given up are counted in.
    """
    weights = [1 / attempt.facts.get(SURVIVAL, 1.0) for attempt in group.own]
    return sum(w * success(attempt) for w, attempt in zip(weights, group.own, strict=True)), sum(weights)


def is_lost(attempts: Sequence[Trajectory], tolerance: float) -> bool:
    """Whether all of them that count were paid 0, and at least one of them ended by itself."""
    scored = [attempt for attempt in attempts if attempt.is_scored]
    is_finished = any(attempt.outcome is Outcome.FINISHED for attempt in scored)
    return is_finished and all(abs(paid(attempt)) <= tolerance for attempt in scored)
