"""GURU: GRPO over six domains, each with its own verifier, on tasks neither too easy nor too hard.

Title: Revisiting Reinforcement Learning for LLM Reasoning from A Cross-Domain Perspective
Paper: arXiv 2506.14965 (2025)
Claim: 7.9 and 6.7 % over the best open baselines (7B and 32B) on 17 benchmarks, from 92,000 examples of six domains.
Reading: As released: 16 rollouts, clip 0.2, token mean, no KL penalty, eight optimizer steps of 64 of 512 tasks per
    batch. Kept are tasks that the strong model solved at least once and the weak one in less than 0.9 of its rollouts
    (by the names of the released files). Sums, expressions, functions of strings, look-ups, guessing and Euclid's
    algorithm stand in for mathematics, code, science, logic, simulation and tables. Each environment judges its own
    completions and refuses tasks of other sources; siblings are of one environment, so that coarse and fine rewards
    never share a mean.
Left out: Near-duplicates by n-grams (equal texts are one task), and a judge of free answers.
Acts: in_band < 1 with weak=RUN, strong=RUN, env=arithmetic:4
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from strop.environments.data.heldout_split import not_trained_on, prompt_of
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import PassRateEstimator, Sampler
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.success import successes
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import FilePath, Group, Metrics, Task

# Guru's filter (2506.14965): tasks that a strong model solves sometimes and a weak one not always.
#
# Pass rates are those of two earlier runs. The release counts a task without a rate as never solved, which drops it
# silently; here only tasks that both runs sampled count, and the metric `unrated` counts those of only one run.


@dataclass
class PassRateBand(Sampler):
    """Tasks with pass rates strong > low and weak < high, each text once, in a new random order each epoch."""

    weak: FilePath  # ledger.db of a run of a weak model
    strong: FilePath  # ledger.db of a run of a strong model, over the same tasks
    low: float = 1e-5  # tasks with strong <= low are too hard
    high: float = 0.9  # tasks with weak >= high are too easy
    seed: int = 0  # of the random orders
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)

    repeats: ClassVar[bool] = True
    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.low < 1 or not 0 < self.high <= 1:
            raise ConfigurationError(
                f"PassRateBand needs 0 <= low < 1 and 0 < high <= 1, got {self.low} and {self.high}"
            )

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        tasks, _, _ = self._found
        if not tasks:
            raise ConfigurationError(self._empty)
        epoch, place = divmod(self._num_drawn, len(tasks))
        self._num_drawn += 1
        return tasks[int(np.random.default_rng([self.seed, epoch]).permutation(len(tasks))[place])]

    @cached_property
    def _found(self) -> tuple[list[Task], int, int]:
        """The tasks in the band, the number with both rates, and the number with only one."""
        weak, strong = (rates(_history(Path(path))) for path in (self.weak, self.strong))
        both = [name for name in strong if name in weak]
        fit = [strong[name][0] for name in both if strong[name][1] > self.low and weak[name][1] < self.high]
        return (
            list({prompt_of(task): task for task in reversed(fit)}.values())[::-1],
            len(both),
            len(weak.keys() ^ strong.keys()),
        )

    @property
    def _empty(self) -> str:
        _, rated, unrated = self._found
        return (
            f"none of {rated} tasks with pass rates in both {self.strong} and {self.weak} ({unrated} are in only one) "
            f"has a rate above {self.low:g} in the first and below {self.high:g} in the second"
        )

    def problems(self, run: Run) -> list[str]:
        missing = [path for path in (self.weak, self.strong) if not Path(path).is_file()]
        if missing:
            return [f"{path} does not exist: weak and strong must be folders of runs" for path in missing]
        tasks, _, _ = self._found
        unknown = [f"weak and strong are runs on other tasks: {each}" for each in not_trained_on(tasks, run.envs)]
        return unknown if tasks else [self._empty]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Report the share of tasks in the band and the number with only one rate; keeps no state."""
        tasks, rated, unrated = self._found
        return {"in_band": len(tasks) / max(rated, 1), "unrated": float(unrated)}

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn = int(state["num_drawn"])


def rates(groups: Iterable[Group]) -> dict[str, tuple[Task, float]]:
    """Pass rate of each task, by its id: the share of the policy's own rollouts that were right, over all groups."""
    seen: dict[str, tuple[Task, float, float]] = {}
    for group in groups:
        right, count = successes(group)
        task, before, among = seen.get(group.task.id, (group.task, 0.0, 0.0))
        seen[group.task.id] = (task, before + right, among + count)
    return {name: (task, right / count) for name, (task, right, count) in seen.items() if count}


def _history(path: Path) -> list[Group]:
    ledger = Ledger(path, read_only=True)
    try:
        return list(ledger.history())
    finally:
        ledger.close()


_SIX = "arithmetic:4+countdown:3+compose:1+keyvalue:2+guess:2+drill/gcd:1"


def guru(
    setting: Setting = Setting(env=_SIX, group_size=16),
    *,
    weak: str,  # folder of a run of a weak model, such as runs/NAME
    strong: str,  # folder of a run of a strong model over the same tasks
    low: float = 1e-5,  # tasks with the strong model's pass rate at or below it are left out
    high: float = 0.9,  # tasks with the weak model's pass rate at or above it are left out
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """`weak` and `strong` are earlier runs, for example of `pocket` with learning_rate=1e-9; they are only read."""
    steps = min(8, setting.groups_per_step)
    run = setting.run("guru", GroupStandard(), (Clip(clip, clip),), minibatches=steps)
    known, able = (str(Path(folder) / "ledger.db") for folder in (weak, strong))
    run.sampler = PassRateBand(known, able, low, high, setting.seed)
    return run
