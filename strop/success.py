"""What counts as evidence of how hard a task is."""

from __future__ import annotations

from collections.abc import Sequence

from strop.stats.task_lineage import is_written
from strop.types import Group, Outcome, Rollout, Task

SURVIVAL = "survival"  # the fact of how likely a rollout was to be played to its end, where probability decided that
RESTART = "restart"  # the fact of how a rollout begins: 1 within a right one, -1 within a wrong one, 0 at the prompt
EXIT = "exit"  # the fact of how many tokens were thought before an answer was forced
PLAIN = "plain_tokens"  # the fact of how long the first model's plain rollout of the same task was
ROUNDING = 1e-6  # of rewards, which are weighted sums: 0.7 + 0.2 + 0.1 is less than 1


def is_right(score: float, least: float = 1.0) -> bool:
    """Whether what was paid is at least `least`, but for rounding."""
    return score >= least - ROUNDING


def paid(rollout: Rollout) -> float:
    """By the environment, which paid at once or was asked, whatever other rewards added; by all where it was not
    asked.
    """
    by_env = [rollout.rewards[name] for name in ("outcome", "checked") if name in rollout.rewards]
    return by_env[0] if by_env else rollout.reward


def kind(task: Task) -> str:
    """What tasks are alike: environment and level; those that were written during the run are a kind of their own."""
    return f"{task.source}:{task.level}" + (":written" if is_written(task) else "")


def success(rollout: Rollout) -> float:
    """How right a rollout was, from 0 to 1."""
    return min(max(paid(rollout), 0.0), 1.0)


def successes(group: Group) -> tuple[float, float]:
    """How many of the policy's own rollouts were right, and how many there were.

    One that was played to its end with probability 1/3 stands for three: those that were given up are counted in.
    """
    weights = [1 / rollout.facts.get(SURVIVAL, 1.0) for rollout in group.own]
    return sum(w * success(rollout) for w, rollout in zip(weights, group.own, strict=True)), sum(weights)


def is_lost(rollouts: Sequence[Rollout], tolerance: float) -> bool:
    """Whether all of them that count were paid 0, and at least one of them ended by itself."""
    scored = [rollout for rollout in rollouts if rollout.is_scored]
    is_finished = any(rollout.outcome is Outcome.FINISHED for rollout in scored)
    return is_finished and all(abs(paid(rollout)) <= tolerance for rollout in scored)
