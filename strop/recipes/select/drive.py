"""DRIVE: RL on all tasks with few rollouts, then on ever smaller sets of the hardest tasks with many.

Title: DRIVE: Data Curation Best Practices for Reinforcement Learning with Verifiable Reward in Competitive Code
    Generation
Paper: arXiv 2511.06307 (2025)
Claim: Ever smaller sets of hard tasks make it better; RL on all 175 of them at once took it from .602 to .506.
Reading: The first stage has 32 steps of groups of 8 on the whole environment, the second 128 steps of groups of 64 on
    the 72, then 50, then 25 hardest of 175 tasks, for 64, 32 and 32 steps. All 175 are sampled once before the first
    set is chosen: 44 steps of 4 tasks, which come before those 128. The paper's batches are larger.
Left out: Supervised training with hard tasks duplicated, before both stages.
Acts: tasks_dropped > 0 with warmup_steps=1, tasks=12, first=4, second=3, third=2, groups_per_step=8
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.support.task_pool import OfEndless, Pool, covering
from strop.control.seeded_choice import highest
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.success import successes
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics, Task

# DRIVE's second stage (2511.06307): a small set of hard tasks, repeatedly reduced to its hardest.
#
# Reading: the paper knows the pass rates of its initial model; here all tasks are sampled once before the first set is
# chosen. Difficulty is measured by the policy's own rollouts within the last phase in which a task was sampled; a task
# without a success is the hardest, defective ones included. With lag, a group counts for the phase of its weights.


@dataclass
class Hardest(Sampler):
    """Sampler: all tasks once; then the `sizes[0]` hardest for `steps[0]` versions, of those the `sizes[1]` hardest,
    and so on.

    The last set has no end. Each task of a set is sampled once before any is repeated, in random order.
    """

    envs: tuple[Environment, ...]
    size: int = 175  # tasks of each environment
    sizes: tuple[int, ...] = (72, 50, 25)  # of the sets, in order
    steps: tuple[int, ...] = (64, 32)  # of all sets but the last
    seed: int = 0  # of orders and ties
    _pool: Pool = field(init=False, repr=False, compare=False)
    _kept: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # the current set
    _starts: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # first step of each phase
    _tried: int = field(default=0, init=False, repr=False, compare=False)  # tasks sampled in this phase
    # by position: phase of its last rollouts, their successes and their number
    _rates: dict[int, tuple[int, float, float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._pool = Pool(self.envs, self.size)
        falls = (len(self._pool), *self.sizes)
        is_falling = all(a >= b >= 1 for a, b in pairwise(falls))
        if not self.sizes or not is_falling or len(self.steps) != len(self.sizes) - 1 or min(self.steps, default=1) < 1:
            raise ConfigurationError(
                f"Hardest needs falling sizes of at most {len(self._pool)} tasks, and steps >= 1 for all but the last; "
                f"got {self.sizes} and {self.steps}"
            )

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        if not self._kept:  # a finite environment repeats tasks: keep each once
            self._kept = sorted({self._pool.place(task) or 0 for task in self._pool.tasks(range(len(self._pool)))})
        while self._is_due(step):
            self._keep_hardest(step)
        epoch, place = divmod(self._tried, len(self._kept))
        self._tried += 1
        order = np.random.default_rng([self.seed, len(self._starts), epoch]).permutation(len(self._kept))
        return self._pool.task(self._kept[int(order[place])])

    def observe(self, group: Group) -> None:
        place, (right, count) = self._pool.place(group.task), successes(group)
        if place is None or not count:
            return
        phase = bisect_right(self._starts, group.version)
        before = self._rates.get(place, (phase, 0.0, 0.0))
        if before[0] <= phase:
            known = before[1:] if before[0] == phase else (0.0, 0.0)
            self._rates[place] = (phase, known[0] + right, known[1] + count)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: number of tasks left, and their mean pass rate when they were last sampled."""
        known = [self._rates[place] for place in self._kept if place in self._rates]
        rates = [right / count for _, right, count in known]
        left, pass_rate = len(self._kept), sum(rates) / max(len(rates), 1)
        return {"tasks_left": float(left), "tasks_dropped": float(len(self._pool) - left), "pass_of_left": pass_rate}

    def state(self) -> dict[str, Any]:
        rates = [[place, *found] for place, found in sorted(self._rates.items())]
        return {"kept": list(self._kept), "begun": list(self._starts), "tried": self._tried, "rates": rates}

    def restore(self, state: dict[str, Any]) -> None:
        self._kept, self._starts = [int(p) for p in state["kept"]], [int(step) for step in state["begun"]]
        self._tried = int(state["tried"])
        self._rates = {int(p): (int(phase), float(right), float(c)) for p, phase, right, c in state["rates"]}

    def _is_due(self, step: int) -> bool:
        """Whether to choose the next set; the first one once every task is known, or was sampled twice."""
        if len(self._starts) == len(self.sizes):
            return False
        if not self._starts:
            count = len(self._kept)
            return self._tried >= (count if len(self._rates) == count else 2 * count)
        return step >= self._starts[0] + list(accumulate(self.steps))[len(self._starts) - 1]

    def _keep_hardest(self, step: int) -> None:
        known = [
            self._rates.get(place, (0, 2.0, 1.0)) for place in self._kept
        ]  # tasks without a scored group are kept last
        wrong = [1 - right / count for _, right, count in known]
        chosen = highest(wrong, self.sizes[len(self._starts)], (self.seed, len(self._starts)))
        self._kept, self._tried = sorted(self._kept[place] for place in chosen), 0
        self._starts.append(step)


def drive(
    setting: Setting = Setting(env="countdown:4", steps=172, groups_per_step=4, group_size=64),
    warmup_steps: int = 32,  # of the first stage
    warmup_rollouts: int = 8,  # per task in the first stage
    tasks: int = OfEndless(175),  # of each environment, in the second stage; all of a table
    first: int = 72,  # tasks of the first hard set
    second: int = 50,  # tasks of the second set, of those
    third: int = 25,  # tasks of the third set, of those
) -> Run:
    """Two runs; the second starts from the model of the first and spends half, a quarter and a quarter on its sets."""
    run = setting.run("drive", GroupStandard(), (Clip(),))
    left = setting.steps + -tasks * len(run.envs) // setting.groups_per_step  # after all were sampled once
    half, quarter = max(left // 2, 1), max(left // 4, 1)
    run.sampler = Hardest(run.envs, covering(run.envs, tasks), (first, second, third), (half, quarter), setting.seed)
    if warmup_steps:
        wide = 2 * setting.groups_per_step
        stage = replace(setting, steps=warmup_steps, groups_per_step=wide, group_size=warmup_rollouts, heldout_every=0)
        run.warmup = stage.run("drive", GroupStandard(), (Clip(),))
    return run
