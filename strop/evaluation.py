"""Held-out accuracy: avg@k, maj@k and unbiased pass@k with intervals, by environment and level."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from strop.environments.needs import NeedsOfEnvs
from strop.errors import ConfigurationError, RewardError
from strop.filter.rewards.from_environment import Earned
from strop.filter.scoring import Scorer
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.policy import Policy
from strop.generate.strategies.independent import Independent
from strop.roles import Agent, Environment, Reward, Strategy
from strop.stats.maj_at_k import majority_at_k
from strop.types import FloatArray, Group, Metrics, Origin, Outcome, Task

HeldOut: TypeAlias = tuple[Environment, Sequence[Task]]
_LOOKED_AT = 4  # candidates per held-out task of an endless environment, as some prompts may be too long


@dataclass(frozen=True)
class Evaluation:
    """Settings of held-out evaluation; tasks and random keys are the same every time."""

    every: int = 20  # steps; 0: only before and after
    tasks: int = 64  # per environment
    rollouts: int = 1  # per task
    # rewards that define accuracy: by default the environment's own, whatever the policy is trained on
    rewards: tuple[Reward, ...] = (Earned(),)
    agent: Agent | None = None  # None: the run's own, where it acts by itself and is shown nothing; else a chat
    strategy: Strategy = field(default_factory=Independent)  # every rollout that it returns is counted
    unseen: tuple[Environment, ...] = ()  # further environments to evaluate, never trained on
    envs: tuple[Environment, ...] = ()  # environments of the main accuracy, if not all trained ones
    target: float | None = None  # accuracy; summary.json reports after how many tokens it was reached

    def __post_init__(self) -> None:
        if self.target is not None and not 0 < self.target <= 1:
            raise ConfigurationError(f"the target of an evaluation must be above 0 and at most 1, got {self.target}")

    def measured(self, trained: tuple[Environment, ...]) -> tuple[Environment, ...]:
        """Environments of the metric `heldout`: `envs`, by default those trained on."""
        return self.envs or trained

    def of(self, agent: Agent) -> Evaluation:
        """With the agent of the run that is measured, unless it has one of its own.

        An agent that writes what the policy did not, or takes demonstrations, would measure what it was given.
        """
        is_own = agent.origin is Origin.POLICY and not isinstance(agent, NeedsOfEnvs)
        return replace(self, agent=self.agent or (agent if is_own else Chat()))

    def is_due(self, step: int) -> bool:
        return self.every > 0 and step % self.every == 0


@dataclass(frozen=True)
class Score:
    """Held-out results of one environment: for each task, how many of its rollouts were right."""

    source: str
    level: int
    rollouts: int  # per task; those that the environment failed are not counted
    right: tuple[int, ...]
    counted: tuple[int, ...]  # valid rollouts per task
    failed: int = 0
    error: str = ""  # the most frequent one of those
    truncated: int = 0  # of the valid ones
    reward: float = math.nan  # mean over valid rollouts
    # per task, for each distinct answer: how often it was given and how often it was right; only with several rollouts
    votes: tuple[tuple[tuple[int, int], ...], ...] = ()
    tasks: str = ""  # hash of the ordered task ids: scores with the same hash can be paired

    def plain(self, is_unseen: bool) -> dict[str, Any]:
        """Row of heldout.jsonl."""
        kept: dict[str, Any] = {"env": self.source, "level": self.level, "tasks": self.tasks, "is_unseen": is_unseen}
        return kept | {"right": self.right, "counted": self.counted, "truncated": self.truncated}

    @property
    def shares(self) -> list[float]:
        """For each task, the share of right rollouts; 0 without valid ones."""
        return [c / max(n, 1) for c, n in zip(self.right, self.counted, strict=True)]

    @property
    def truncated_share(self) -> float:
        return self.truncated / max(sum(self.counted), 1)

    def majority_at(self, k: int) -> tuple[float, float, float]:
        """maj@k over tasks with its 95% interval."""
        each = zip(self.votes, self.counted, strict=True)
        values = [majority_at_k(v, n - sum(times for times, _ in v), k) for v, n in each if n >= k]
        return interval(np.array(values, dtype=np.float32))

    def pass_at(self, k: int) -> tuple[float, float, float]:
        """Unbiased pass@k over tasks with its 95% interval: estimate, low, high."""
        values = [pass_at_k(n, c, k) for n, c in zip(self.counted, self.right, strict=True) if n >= k]
        return interval(np.array(values, dtype=np.float32), self.rollouts if k == 1 else 1)


def pass_at_k(rollouts: int, right: int, k: int) -> float:
    """Probability that k of the rollouts, sampled without replacement, contain a right one (Chen et al. 2021)."""
    if rollouts - right < k:
        return 1.0
    return 1.0 - math.comb(rollouts - right, k) / math.comb(rollouts, k)


def interval(values: FloatArray, rollouts: int = 1) -> tuple[float, float, float]:
    """Mean over tasks with a Wilson interval; its sample size is the effective one, from the variance over tasks."""
    if not len(values):
        return math.nan, math.nan, math.nan
    mean = float(values.mean())
    size = float(len(values))
    if len(values) > 1 and 0.0 < mean < 1.0 and (spread := float(values.var(ddof=1))) > 0.0:
        size = min(max(mean * (1 - mean) / spread * len(values), len(values)), len(values) * rollouts)
    z = 1.959964
    centre = (mean + z * z / (2 * size)) / (1 + z * z / size)
    half = z / (1 + z * z / size) * math.sqrt(mean * (1 - mean) / size + z * z / (4 * size * size))
    return mean, max(0.0, min(centre - half, mean)), min(1.0, max(centre + half, mean))


def held_out(envs: Sequence[Environment], evaluation: Evaluation, policy: Policy, skipped: int = 0) -> list[HeldOut]:
    """Environments with their evaluation tasks, after the first `skipped`; selected once for all evaluations."""
    return [(env, _fitting(env, evaluation.tasks, policy, skipped)) for env in envs]


def ids_of(asked: Sequence[HeldOut]) -> frozenset[str]:
    """Ids of evaluation tasks, which are never trained on."""
    return frozenset(task.id for _, tasks in asked for task in tasks)


async def evaluate(
    asked: Sequence[HeldOut],
    evaluation: Evaluation,
    policy: Policy,
    scorer: Scorer,
    seed: int,
    env_seconds: float = 60.0,
) -> list[Score]:
    """Sample rollouts of each environment's held-out tasks; a rollout is right when its reward is at least 1."""
    found = (_of_env(each, evaluation, policy, scorer, seed, env_seconds) for each in asked)
    scores = list(await asyncio.gather(*found))
    failed = sum(score.failed for score in scores)
    if failed and not any(sum(score.counted) for score in scores):
        why = next(score.error for score in scores if score.failed)
        raise RewardError(f"all {failed} held-out rollouts failed, so nothing is measured: {why}")
    return scores


async def _of_env(
    asked: HeldOut, evaluation: Evaluation, policy: Policy, scorer: Scorer, seed: int, env_seconds: float
) -> Score:
    env, tasks = asked

    async def rollout(task: Task, number: int) -> Group:
        group = Group(number, task, [])
        player = GroupPlayer(group, policy, [env], evaluation.agent or Chat(), seed, scorer)
        player.name, player.seconds = f"heldout/{task.id}", env_seconds
        starts = [player.another() for _ in range(evaluation.rollouts)]
        group.rollouts = await evaluation.strategy(group, starts, player)
        await scorer(group)
        return group

    groups = await asyncio.gather(*(rollout(task, number) for number, task in enumerate(tasks)))
    return _score(env, groups, evaluation.rollouts)


def _score(env: Environment, groups: Sequence[Group], rollouts: int) -> Score:
    scored = [t for group in groups for t in group.scored]
    errors = Counter(t.error for group in groups for t in group.rollouts if not t.is_scored)
    return Score(
        env.name,
        env.level,
        rollouts,
        right=tuple(sum(t.reward >= 1.0 for t in group.scored) for group in groups),
        counted=tuple(len(group.scored) for group in groups),
        failed=sum(len(group.rollouts) for group in groups) - len(scored),
        error=errors.most_common(1)[0][0] if errors else "",
        truncated=sum(t.outcome is Outcome.TRUNCATED for t in scored),
        reward=sum(t.reward for t in scored) / len(scored) if scored else math.nan,
        votes=tuple(_votes(env, group) for group in groups) if rollouts > 1 else (),
        tasks=hashlib.sha256(" ".join(group.task.id for group in groups).encode()).hexdigest()[:16],
    )


def _votes(env: Environment, group: Group) -> tuple[tuple[int, int], ...]:
    given = [(env.answer(t.completion), t.reward >= 1.0) for t in group.scored]
    times, right = Counter(answer for answer, _ in given), Counter(answer for answer, is_right in given if is_right)
    return tuple((count, right[answer]) for answer, count in times.items() if answer)


def _fitting(env: Environment, count: int, policy: Policy, skipped: int) -> list[Task]:
    """Distinct held-out tasks whose prompts leave room for a completion; a repeated task would repeat its rollout."""
    known = env.num_tasks(heldout=True)
    most = _LOOKED_AT * (count + skipped) if known is None else known
    candidates = (env.task(index, heldout=True) for index in range(most))
    tasks = list(islice(filter(policy.fits, candidates), skipped, skipped + count))
    if skipped and count and not tasks:
        raise ConfigurationError(f"{env.name} has {known or most} held-out tasks, all of which the run evaluated")
    if count and not tasks:
        raise ConfigurationError(f"no held-out prompt of {env.name} leaves room for a completion: increase context")
    return tasks


def heldout_metrics(scores: Sequence[Score], unseen: Sequence[Score] = ()) -> Metrics:
    """Held-out pass@1 over trained environments, over unseen environments, and of each."""
    metrics = _over("heldout", scores) | (_over("unseen", unseen) if unseen else {}) | _beside(scores)
    for score in (*scores, *unseen) if len(scores) + len(unseen) > 1 else ():
        metrics |= _named(f"heldout/{score.source}-{score.level}", score.pass_at(1))
    return metrics


def _over(name: str, scores: Sequence[Score]) -> Metrics:
    values = [c / n for score in scores for c, n in zip(score.right, score.counted, strict=True) if n]
    return _named(name, interval(np.array(values, dtype=np.float32), scores[0].rollouts))


def _beside(scores: Sequence[Score]) -> Metrics:
    """Share of truncated held-out rollouts, and their mean reward where it differs from accuracy."""
    counts = [sum(score.counted) for score in scores]
    if not sum(counts):
        return {}
    reward = sum(score.reward * count for score, count in zip(scores, counts, strict=True) if count) / sum(counts)
    right = sum(sum(score.right) for score in scores) / sum(counts)
    found = {"heldout_truncated": sum(score.truncated for score in scores) / sum(counts)}
    return found | ({"heldout_reward": reward} if abs(reward - right) > 1e-9 else {})


def _named(name: str, found: tuple[float, float, float]) -> Metrics:
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))
