"""ADCL + EGSR: easy-to-hard curriculum re-sorted as the policy learns; failed tasks return with a solution to rewrite.

Title: Learning Like Humans: Advancing LLM Reasoning Capabilities via Adaptive Difficulty Curriculum Learning and
    Expert-Guided Self-Reformulation
Paper: arXiv 2505.08364 (2025)
Claim: 10 % better on AIME 2024 and 16.6 % on AIME 2025 than RL without both.
Reading: Difficulty is the prediction of the run's pass-rate estimator; the paper measures the next batch with rollouts.
    A rollout sampled with the whole solution in its prompt joins its failed siblings if it is right; its ratio is of
    the policy without the solution to the one that read it. The number of batches was not found.
Left out: Rollouts that only measure difficulty.
Acts: inversion_rate > 0 and share/guided > 0 with env=arithmetic:4+countdown:4, tasks=8, batches=4, group_size=2
Break: more=0: no failed task comes again with its solution
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from strop.concurrency import together
from strop.control.budgets.waves import AgainWhenLost
from strop.control.samplers.support.task_pool import OfEndless, Pool, covering
from strop.environments.format.hints import hinted
from strop.environments.needs import SOLUTIONS, EnvNeed, first_tasks
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Environment, PassRateEstimator, Player, Sampler, Strategy
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Message, Metrics, Origin, Rollout, Start, Task

# ADCL's curriculum (2505.08364): tasks from easy to hard, cut into batches, each re-sorted when it comes.
#
# Reading: the paper measures the next batch with the current policy; here the run's pass-rate estimator predicts how
# likely a task is solved, at no cost. At the start it knows nothing, so the levels of environments are the difficulty;
# ties are broken at random. After the last batch all tasks are sorted and cut again.


@dataclass
class Resorted(Sampler):
    """Sampler of all tasks once, from easy to hard; once cut, no task moves to another batch."""

    envs: tuple[Environment, ...]
    size: int = 64  # tasks of each environment
    batches: int = 8  # of all tasks
    seed: int = 0  # of the order of ties
    _pool: Pool = field(init=False, repr=False, compare=False)
    _order: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    _num_sampled: int = field(default=0, init=False, repr=False, compare=False)
    _inverted: float = field(default=0.0, init=False, repr=False, compare=False)  # share of pairs, of the last sorting

    def __post_init__(self) -> None:
        self._pool = Pool(self.envs, self.size)
        if not 1 <= self.batches <= len(self._pool):
            raise ConfigurationError(
                f"Resorted needs 1 <= batches <= tasks, got {self.batches} and {len(self._pool)} tasks"
            )

    def problems(self, run: Run) -> list[str]:
        """Errors: tasks that the estimator cannot tell apart."""
        if len({(task.source, task.level) for env in self.envs for task in first_tasks(env)}) > 1:
            return []
        return [
            f"{self.envs[0].name} is one environment of one level, whose tasks all count as equally hard, so that "
            "sorting them again changes nothing: add a column `level` with whole numbers, or join environments by +"
        ]

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        epoch, place = divmod(self._num_sampled, len(self._pool))
        bounds = [batch * len(self._pool) // self.batches for batch in range(self.batches + 1)]
        if place == 0:
            self._order = self._cut(epoch, step, estimator)
        elif place in bounds:
            self._resort(slice(place, bounds[bounds.index(place) + 1]), step, estimator)
        self._num_sampled += 1
        return self._pool.task(self._order[place])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: share of a batch's task pairs that the last sorting swapped."""
        return {"inversion_rate": self._inverted}

    def state(self) -> dict[str, Any]:
        return {"order": list(self._order), "num_drawn": self._num_sampled, "inverted": self._inverted}

    def restore(self, state: dict[str, Any]) -> None:
        self._order, self._num_sampled = [int(place) for place in state["order"]], int(state["num_drawn"])
        self._inverted = float(state["inverted"])

    def _cut(self, epoch: int, step: int, estimator: PassRateEstimator) -> list[int]:
        """All positions from easy to hard."""
        tasks = self._pool.tasks(range(len(self._pool)))
        ties = np.random.default_rng([self.seed, epoch]).random(len(tasks))
        levels = np.array([task.level for task in tasks])
        order = np.lexsort((ties, levels, -estimator.predict(tasks, step)[0]))
        return [int(place) for place in order]

    def _resort(self, batch: slice, step: int, estimator: PassRateEstimator) -> None:
        before = self._order[batch]
        easy = estimator.predict(self._pool.tasks(before), step)[0]  # [B]
        order = np.argsort(-easy, kind="stable")
        self._order[batch] = [before[place] for place in order]
        self._inverted = inversion_rate([int(place) for place in order])


def inversion_rate(order: Sequence[int]) -> float:
    """Share of all pairs in descending order; 0 for fewer than two values."""
    values = np.asarray(order)
    flipped = np.triu(values[:, None] > values[None, :], 1).sum()
    return float(flipped / max(len(values) * (len(values) - 1) / 2, 1))


# Expert-guided self-reformulation (ADCL-EGSR, 2505.08364): where a whole wave failed, the policy rewrites a solution.
#
# Reading: the wave after one without success reads the expert's solution, or its answer alone. Its right rollouts join
# the group as if nothing had been shown; its wrong ones are discarded. Tokens keep the logprobs they were sampled with,
# behind the solution, so their ratio starts below 1. The expert is the environment itself.

_ALL = 1000  # steps: more than any worked solution has


@dataclass(frozen=True)
class Reformulated(Strategy):
    """Strategy whose first wave is plain; later waves read a solution, and only their right rollouts are returned."""

    envs: tuple[Environment, ...]
    answer_alone: bool = False  # whether the answer is shown without the worked solution

    needs_success: ClassVar[bool] = True

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not group.rollouts:
            return await together(play(start) for start in starts)
        shown = self._shown(group.task)
        made = await together(play(replace(start, messages=shown, origin=Origin.GUIDED)) for start in starts)
        scores = await play.score(made)
        accepted = [a for a, scored in zip(made, scores, strict=True) if scored is not None and is_right(scored)]
        return [play.retold(rollout, rollout.task.messages) for rollout in accepted]

    @property
    def env_needs(self) -> tuple[EnvNeed, ...]:
        return () if self.answer_alone else (SOLUTIONS,)

    def _shown(self, task: Task) -> tuple[Message, ...]:
        if not self.answer_alone:
            return hinted(self.envs, task, _ALL)
        *before, last = task.messages
        return (*before, replace(last, content=f"{last.content} hint: {task.answer}"))


def adcl_egsr(
    setting: Setting = Setting(env="arithmetic:3+countdown:3+arithmetic:4+countdown:4"),
    tasks: int = OfEndless(64),  # of each environment; all of a table
    batches: int = 8,  # of all tasks; each is re-sorted before it is sampled
    answer_alone: bool = False,  # whether a failed task's answer is shown without the worked solution
    more: int = 4,  # further rollouts, which read a solution, where all failed
) -> Run:
    """Environments of a low level count as easy until pass rates are known."""
    run = setting.run(
        "adcl_egsr",
        GroupStandard(),
        (Clip(),),
        budget=AgainWhenLost(setting.group_size, more),
        reduction=SequenceMean(),
    )
    run.sampler = Resorted(run.envs, covering(run.envs, tasks), batches, setting.seed)
    run.strategy = Reformulated(run.envs, answer_alone)
    return run
