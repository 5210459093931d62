"""1-shot RLVR: GRPO on a single task, the one whose accuracy varied most over a pilot run.

Title: Reinforcement Learning for Reasoning in Large Language Models with One Training Example
Paper: arXiv 2504.20571 (2025)
Key: 1-shot-rlvr
Claim: MATH500 from 36.0 to 73.6 % with one task, as much as with 1,200.
Reading: As released: the task is repeated to fill the batch, groups of 8, temperature 0.6, a KL penalty of 0.001 and an
    entropy bonus of 0.001, one optimizer step per batch. Groups without contrast stay: the gain comes after the task is
    solved. A training batch of 128 copies is one of 8 here.
Left out: PPO in place of GRPO.
Acts: different_share < 1 and pilot_spread > 0 with pilot=PILOT
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import pstdev
from typing import Any, ClassVar

from strop.environments.data.heldout_split import not_trained_on
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import PassRateEstimator, Sampler
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.success import successes
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.kl import Kl
from strop.types import FilePath, Group, Metrics, Task

# 1-shot RLVR's choice (2504.20571): the tasks whose accuracy varied most over a pilot run, repeated.
#
# Reading: as released, by the population standard deviation of a task's accuracies, one for each of its groups in the
# pilot; so a late jump counts more than steady progress. Tasks with a single group have none and are not considered.


@dataclass
class MostVaried(Sampler):
    """Sampler of the `count` tasks of the pilot whose accuracy varied most, in turn; of equal ones the first."""

    pilot: FilePath  # ledger.db of a run that sampled each task several times
    count: int = 1  # tasks
    _chosen: list[tuple[Task, float]] = field(default_factory=list, init=False, repr=False, compare=False)
    _num_sampled: int = field(default=0, init=False, repr=False, compare=False)

    repeats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigurationError(f"MostVaried needs count >= 1, got {self.count}")

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        task, _ = self.chosen()[self._num_sampled % self.count]
        self._num_sampled += 1
        return task

    def chosen(self) -> list[tuple[Task, float]]:
        """Tasks with their standard deviations, the most varied first."""
        if not self._chosen:
            ledger = Ledger(Path(self.pilot), read_only=True)
            try:
                found = varied(ledger.history())
            finally:
                ledger.close()
            self._chosen = found[: self.count]
        if len(self._chosen) < self.count:
            raise ConfigurationError(
                f"{self.pilot} has {len(self._chosen)} tasks that were sampled more than once, need {self.count}: "
                "run a pilot over fewer tasks"
            )
        return self._chosen

    def problems(self, run: Run) -> list[str]:
        if not Path(self.pilot).is_file():
            return [f"{self.pilot} does not exist: `pilot` is the folder of a run that sampled each task several times"]
        if self.chosen()[-1][1] == 0:
            return [
                f"the accuracy of only {sum(spread > 0 for _, spread in self._chosen)} tasks of {self.pilot} varied"
            ]
        foreign = not_trained_on([task for task, _ in self.chosen()], run.envs)
        return [f"pilot={self.pilot} is a run on other tasks: {each}" for each in foreign]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: the tasks' deviation in the pilot, and the share of different tasks in the batch."""
        spreads = [spread for _, spread in self.chosen()]
        different = len({group.task.id for group in groups})
        return {"pilot_spread": sum(spreads) / len(spreads), "different_share": different / max(len(groups), 1)}

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_sampled}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_sampled = int(state["num_drawn"])


def varied(groups: Iterable[Group]) -> list[tuple[Task, float]]:
    """Tasks with the standard deviation of their accuracies, the most varied first."""
    tasks: dict[str, Task] = {}
    accuracies: dict[str, list[float]] = {}
    for group in groups:
        right, count = successes(group)
        if count:
            tasks.setdefault(group.task.id, group.task)
            accuracies.setdefault(group.task.id, []).append(right / count)
    found = [(tasks[name], pstdev(each)) for name, each in accuracies.items() if len(each) > 1]
    return sorted(found, key=lambda pair: -pair[1])


def one_shot_rlvr(
    setting: Setting = Setting(temperature=0.6),
    *,
    pilot: str,  # folder of a run over a few tasks, as runs/NAME
    count: int = 1,  # tasks
    kl: float = 0.001,  # weight of the KL penalty to the reference
    entropy: float = 0.001,  # weight of the entropy bonus
) -> Run:
    """`pilot` is the folder of an earlier run that sampled each task several times; it is only read."""
    run = setting.run("one_shot_rlvr", GroupStandard(), (Clip(), Kl("k3", kl), Entropy(entropy)))
    run.sampler = MostVaried(str(Path(pilot) / "ledger.db"), count)
    return run
