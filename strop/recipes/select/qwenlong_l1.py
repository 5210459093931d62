"""QwenLong-L1: SFT, then GRPO in phases of growing input length; hard short tasks are carried over.

Title: QwenLong-L1: Towards Long-Context Large Reasoning Models with Reinforcement Learning
Paper: arXiv 2505.17667 (2025)
Claim: A 32B model level with Claude-3.7-Sonnet-Thinking on seven benchmarks of questions about long documents.
Reading: Supervised training first, then two phases of RL; inputs are passages of sums, and the paper's 20,000 and
    60,000 tokens are 55 and 120 characters here. Four optimizer steps per batch (32 of 128 tasks), groups of 8,
    temperature 0.7 and no KL penalty. The difficulty of a short task is that of its first group. Their share of the
    second phase was not found.
Left out: The LLM judge in addition to the rule, since the environments' own check is exact; top-p of 0.95, under which
    ratios would start below 1.
Acts: carried_share > 0 with warmup_steps=1, tasks=8, carried=0.9, most=1.0
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.support.task_pool import OfEndless, Pool, covering
from strop.control.seeded_choice import drawn
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.success import successes
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics, Task

# QwenLong-L1's phases (2505.17667): short inputs first, then longer ones plus the hard short ones.
#
# Reading: an input's length is that of its prompt in characters. The paper measures difficulty with the initial model;
# here a task's first group does, by the version of its weights. In the paper's experiments tasks without a right
# rollout are carried over (`most` = 0). Among several, a task is sampled with weight 1 / mean, a mean of 0 counting as
# one right rollout. The share of carried tasks is not published.

_FRESH, _CARRIED = 0, 1  # keys of the random choices


@dataclass
class LengthPhases(Sampler):
    """Sampler: phase k has tasks of more than `caps[k - 1]` and at most `caps[k]` characters, each once before any
    repeats.

    A share `carried` of a later phase's tasks are earlier ones whose first group had a mean of at most `most`. Tasks
    longer than the last cap are never sampled.
    """

    envs: tuple[Environment, ...]
    caps: tuple[int, ...]  # longest prompt of each phase
    steps: tuple[int, ...]  # of every phase but the last
    size: int = 256  # tasks of each environment
    carried: float = 0.25  # share of earlier tasks in later phases
    most: float = 0.0  # largest mean success of a task that is carried over
    seed: int = 0  # of orders and choices
    _pool: Pool = field(init=False, repr=False, compare=False)
    _phases: list[list[int]] = field(default_factory=list, init=False, repr=False, compare=False)  # by phase
    _tried: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # number per phase
    _num_sampled: int = field(default=0, init=False, repr=False, compare=False)
    # by position: version, number, successes and scored rollouts of the first group
    _first: dict[int, tuple[int, int, float, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._pool = Pool(self.envs, self.size)
        self._tried = [0] * len(self.caps)
        is_rising = all(a < b for a, b in zip(self.caps, self.caps[1:], strict=False))
        if not self.caps or not is_rising or len(self.steps) != len(self.caps) - 1 or min(self.steps, default=1) < 1:
            raise ConfigurationError(
                f"LengthPhases needs rising caps, and steps >= 1 for all but the last; got {self.caps} and {self.steps}"
            )
        if not (0 <= self.carried < 1 and 0 <= self.most <= 1):
            raise ConfigurationError(
                f"LengthPhases needs 0 <= carried < 1 and 0 <= most <= 1, got {self.carried} and {self.most}"
            )

    def problems(self, run: Run) -> list[str]:
        lengths = sorted(map(_length, self._pool.tasks(range(len(self._pool)))))
        return [
            f"phase {phase} has no task: the {len(lengths)} prompts have {lengths[0]} to {lengths[-1]} characters, and "
            f"caps are {self.caps}"
            for phase, places in enumerate(self._members())
            if not places
        ]

    def phase(self, step: int) -> int:
        return bisect_right(list(accumulate(self.steps)), step)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        phase, number = self.phase(step), self._num_sampled
        self._num_sampled += 1
        hard = self._hard(phase)
        if hard and np.random.default_rng([self.seed, _CARRIED, number]).random() < self.carried:
            (chosen,) = drawn(list(hard.values()), 1, (self.seed, _CARRIED, number, 1))
            return self._pool.task(list(hard)[chosen])
        places = self._members()[phase]
        epoch, place = divmod(self._tried[phase], len(places))
        self._tried[phase] += 1
        order = np.random.default_rng([self.seed, _FRESH, phase, epoch]).permutation(len(places))
        return self._pool.task(places[int(order[place])])

    def observe(self, group: Group) -> None:
        """Keep the first group of each task: that of the oldest weights, whichever arrives first."""
        place, (right, count) = self._pool.place(group.task), successes(group)
        if place is None or not count:
            return
        found = (group.version, group.number, right, count)
        self._first[place] = min(self._first.get(place, found), found)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: mean phase of the groups, from 0 on, and share of carried tasks."""
        own = [self.phase(group.version) for group in groups]
        of_task = [bisect_left(self.caps, _length(group.task)) for group in groups]
        count = max(len(groups), 1)
        carried = sum(task < phase for task, phase in zip(of_task, own, strict=True))
        return {"phase": sum(own) / count, "carried_share": carried / count}

    def state(self) -> dict[str, Any]:
        first = [[place, *found] for place, found in sorted(self._first.items())]
        return {"num_drawn": self._num_sampled, "tried": list(self._tried), "first": first}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_sampled, self._tried = int(state["num_drawn"]), [int(count) for count in state["tried"]]
        self._first = {int(p): (int(v), int(n), float(right), float(c)) for p, v, n, right, c in state["first"]}

    def _members(self) -> list[list[int]]:
        """Positions of each phase; all prompts are read once."""
        if not self._phases:
            self._phases = [[] for _ in self.caps]
            for place, task in enumerate(self._pool.tasks(range(len(self._pool)))):
                if (phase := bisect_left(self.caps, _length(task))) < len(self.caps):
                    self._phases[phase].append(place)
        return self._phases

    def _hard(self, phase: int) -> dict[int, float]:
        """Positions of earlier phases that are carried over, with their weights."""
        known = {place: self._first[place][2:] for place in sorted(self._first)}
        means = {place: (right / count, 1 / count) for place, (right, count) in known.items()}
        earlier = {place for places in self._members()[:phase] for place in places}
        kept = {place: found for place, found in means.items() if place in earlier and found[0] <= self.most}
        return {place: 1 / max(mean, least) for place, (mean, least) in kept.items()}


def _length(task: Task) -> int:
    return sum(len(message.content) for message in task.messages)


def qwenlong_l1(
    setting: Setting = Setting(env="passages:1+passages:3+passages:5+passages:8", temperature=0.7),
    warmup_steps: int = 6,  # of supervised training
    short: int = 55,  # characters of the longest input of the first phase
    long: int = 120,  # characters of the longest input of the second phase
    tasks: int = OfEndless(128),  # of each environment; all of a table
    carried: float = 0.25,  # share of carried short inputs in the second phase
    most: float = 0.0,  # largest mean success of a short task that is carried over
) -> Run:
    """Half of the steps on inputs up to `short` characters, the rest up to `long` plus hard short ones."""
    run = setting.run("qwenlong_l1", GroupStandard(), (Clip(),), minibatches=min(4, setting.groups_per_step))
    half = (max(setting.steps // 2, 1),)
    run.sampler = LengthPhases(run.envs, (short, long), half, covering(run.envs, tasks), carried, most, setting.seed)
    run.warmup = shown(setting, "qwenlong_l1", warmup_steps)
    return run
