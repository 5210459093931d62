"""Success of rollouts and groups: the evidence for a task's difficulty."""

from __future__ import annotations

from collections.abc import Sequence

from strop.stats.task_lineage import is_written
from strop.types import Group, Outcome, Rollout, Task

SURVIVAL = "survival"  # fact: probability that a rollout was played to its end, where that was random
RESTART = "restart"  # fact: prefix of a rollout: 1 from a right rollout, -1 from a wrong one, 0 none
EXIT = "exit"  # fact: number of reasoning tokens before an answer was forced
PLAIN = "plain_tokens"  # fact: length of the initial model's plain rollout of the same task
ROUNDING = 1e-6  # of rewards, which are weighted sums: 0.7 + 0.2 + 0.1 is less than 1


def is_right(score: float, least: float = 1.0) -> bool:
    """Whether a score is at least `least`, up to rounding."""
    return score >= least - ROUNDING


def paid(rollout: Rollout) -> float:
    """Reward from the environment, ignoring other rewards; the total reward where the environment gave none."""
    by_env = [rollout.rewards[name] for name in ("outcome", "checked") if name in rollout.rewards]
    return by_env[0] if by_env else rollout.reward


def kind(task: Task) -> str:
    """Key of similar tasks: environment and level; generated tasks have a kind of their own."""
    return f"{task.source}:{task.level}" + (":written" if is_written(task) else "")


def success(rollout: Rollout) -> float:
    """Success of a rollout, from 0 to 1."""
    return min(max(paid(rollout), 0.0), 1.0)


def successes(group: Group) -> tuple[float, float]:
    """Number of right rollouts among the policy's own, and their total.

    A rollout that was played to its end with probability 1/3 counts three times, which corrects for abandoned ones.
    """
    weights = [1 / rollout.facts.get(SURVIVAL, 1.0) for rollout in group.own]
    return sum(w * success(rollout) for w, rollout in zip(weights, group.own, strict=True)), sum(weights)


def is_lost(rollouts: Sequence[Rollout], tolerance: float) -> bool:
    """Whether all scored rollouts have reward 0 and at least one of them finished."""
    scored = [rollout for rollout in rollouts if rollout.is_scored]
    is_finished = any(rollout.outcome is Outcome.FINISHED for rollout in scored)
    return is_finished and all(abs(paid(rollout)) <= tolerance for rollout in scored)
