"""Stopped and gone on with: every sampler, budget and pass-rate estimator has the same memory and makes the same
choices after.

They are shown groups of many tasks, written into a checkpoint and read from its files by new ones; then both go on. The
whole size, 20,000 tasks and 200 choices, takes minutes for all: `make slow`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from strop.capabilities import Learns, Loads, Meets, Observes, inside, outermost
from strop.control import budgets, estimators, samplers
from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.alp_gmm import LearningProgress
from strop.control.samplers.few import Few
from strop.control.samplers.fixed_mixture import Mixture
from strop.control.samplers.learnability import Learnability
from strop.control.samplers.nearest_to_target import Nearest
from strop.control.samplers.permuted_control import Permuted
from strop.control.samplers.prioritized_level_replay import LevelReplay
from strop.control.samplers.sequential import Staged
from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.environments.bundled.arithmetic import Arithmetic
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.recipes.reward.critique_coder import AlternatingLabels
from strop.recipes.select.acereason_nemotron import Unsolved
from strop.recipes.select.adcl_egsr import Resorted
from strop.recipes.select.cures import VarianceWeighted
from strop.recipes.select.dereason import TaskScoreRange
from strop.recipes.select.dots_rr import NearTarget
from strop.recipes.select.dps import Dynamics
from strop.recipes.select.drive import Hardest
from strop.recipes.select.dump import UpperConfidence
from strop.recipes.select.gain_rl import AngleRanked
from strop.recipes.select.one_shot_rlvr import MostVaried
from strop.recipes.select.qwenlong_l1 import LengthPhases
from strop.recipes.select.rag_rl import Scheduled
from strop.recipes.select.sec import LevelBandit
from strop.recipes.select.vade import Thompson
from strop.recipes.system.sapo_sharing import SharedTasks
from strop.roles import Budget, Environment, PassRateEstimator, Sampler
from strop.simulate.training_loop import Control
from strop.storage import checkpoint
from strop.types import SUCCESS, Group, Outcome, Rollout, Sampling, Task
from tests.building import turn
from tests.rooms import kinds_of

ENVS: tuple[Environment, ...] = (Arithmetic(4, 1), Arithmetic(5, 1))
TURNS = (turn(3),)
DRAW = 20  # groups of a step
SMALL, WHOLE = (60, 3 * DRAW), (20_200, 200)  # tasks remembered, some of them twice, and later choices

Make = Callable[[int], Any]  # from the number of tasks
# `many` is of all tasks; each environment has half of them
SAMPLERS: dict[str, Make] = {
    "AlternatingLabels": lambda many: AlternatingLabels(Uniform(ENVS)),
    "AngleRanked": lambda many: AngleRanked(ENVS, many // 2),
    "Dynamics": lambda many: Dynamics(ENVS, many // 2),
    "Few": lambda many: Few(ENVS, many),
    "Hardest": lambda many: Hardest(ENVS, many // 2, (many // 2, many // 4, many // 8), (many // DRAW, 2)),
    "Learnability": lambda many: Learnability(ENVS, many // 2),
    "LearningProgress": lambda many: LearningProgress(ENVS),
    "LengthPhases": lambda many: LengthPhases(ENVS, (10, 100), (many // DRAW // 2,), many // 2, most=0.5),
    "LevelBandit": lambda many: LevelBandit(ENVS),
    "LevelReplay": lambda many: LevelReplay(ENVS, many // 2),
    "Mixture": lambda many: Mixture(ENVS, (0.3, 0.7)),
    "NearTarget": lambda many: NearTarget(ENVS, many // 2),
    "Nearest": lambda many: Nearest(ENVS, pool=many // 2),
    "Permuted": lambda many: Permuted(Dynamics(ENVS, many // 2), ENVS, many // 2),
    "Resorted": lambda many: Resorted(ENVS, many // 4),
    "Scheduled": lambda many: Scheduled(ENVS, many),
    "SharedTasks": lambda many: SharedTasks(Uniform(ENVS), ENVS, "nobody-shares-here"),
    "Staged": lambda many: Staged((Dynamics(ENVS, many // 2), Thompson(ENVS, many // 2)), (many // DRAW + 2,)),
    "Thompson": lambda many: Thompson(ENVS, many // 2),
    "Uniform": lambda many: Uniform(ENVS),
    "Unsolved": lambda many: Unsolved(Uniform(ENVS)),
    "UpperConfidence": lambda many: UpperConfidence(ENVS),
    "VarianceWeighted": lambda many: VarianceWeighted(ENVS, many // 2),
    "TaskScoreRange": lambda many: TaskScoreRange(Uniform(ENVS), ENVS, low=3.0),
    "WithWritten": lambda many: WithWritten(Uniform(ENVS)),
}


def mechanisms(room: ModuleType, role: type[Any]) -> list[Any]:
    return [kind for kind in kinds_of(room, role) if is_dataclass(kind)]


BUDGETS = {kind.__name__: kind for kind in mechanisms(budgets, Budget)}
ESTIMATORS = {kind.__name__: kind for kind in mechanisms(estimators, PassRateEstimator)}
# a new one is made from environments alone, unless it stands above; MostVaried (see below) and PassRateBand keep a
# count
SAMPLERS |= {
    kind.__name__: lambda many, kind=kind: kind(ENVS)  # type: ignore[misc]
    for kind in mechanisms(samplers, Sampler)
    if kind.__name__ not in {*SAMPLERS, "MostVaried", "PassRateBand"}
}


def together() -> list[tuple[str, str, str]]:
    """Each sampler once; each budget and each pass-rate estimator once with some sampler, then plain ones."""
    return [
        (sampler, budget or "Fixed", estimator or "Offsets")
        for sampler, budget, estimator in zip_longest(SAMPLERS, BUDGETS, ESTIMATORS)
    ]


def control_of(names: tuple[str, str, str], many: int, model: Path) -> Control:
    """New parts, ready for a run."""
    sampler, budget, estimator = names
    control = Control(SAMPLERS[sampler](many), ESTIMATORS[estimator](), BUDGETS[budget]())
    for part in inside(control, Loads):
        part.load_model(model, 0)
    for met in inside(control, Meets):
        met.meet(Policy.load(model, Scripted(lambda prompt, key: ""), Sampling(), 96))
    return control


@dataclass
class Course:
    """Groups one after the other; whether a rollout is right depends on task and number alone."""

    control: Control
    number: int = 0
    draw: list[Group] = field(default_factory=list)

    @property
    def version(self) -> int:
        return self.number // DRAW

    def show(self, group: Group) -> None:
        for part in inside(self.control, Observes):
            part.observe(group)
        self.draw.append(group)
        self.number += 1
        if self.number % DRAW == 0:
            for _, each in outermost(self.control, Learns):
                each.learn(self.draw)
            self.draw = []

    def choose(self) -> tuple[str, int, tuple[float, float] | None]:
        """The task, its rollouts and what was predicted of it."""
        task = self.control.sampler.next(self.version, self.control.estimator)
        means, variances = self.control.estimator.predict([task], self.version)
        group = self.of(task, (float(means[0]), float(variances[0])))
        while count := self.control.budget.rollouts(group):
            group.rollouts += made_up(group, count)
        self.show(group)
        return task.id, len(group.rollouts), group.predicted

    def of(self, task: Task, predicted: tuple[float, float] = (0.5, 1 / 12)) -> Group:
        return Group(self.number, task, [], self.version, predicted=predicted)


def made_up(group: Group, count: int) -> list[Rollout]:
    first, probability = len(group.rollouts), zlib.crc32(group.task.id.encode()) % 101
    marks = [float(zlib.crc32(f"{group.number}/{first + i}".encode()) % 100 < probability) for i in range(count)]
    return [
        Rollout(f"{group.number}/{first + i}", group.task, TURNS, Outcome.FINISHED, reward=mark,
                   rewards={"outcome": mark}, facts={SUCCESS: mark})
        for i, mark in enumerate(marks)
    ]  # fmt: skip


def taught(course: Course, many: int) -> Course:
    """What has chosen a few tasks and was shown a group of each of `many`; stopped in the middle of a batch."""
    for _ in range(DRAW):
        course.choose()
    for index in range(many // 2):
        for env in ENVS:
            group = course.of(env.task(index))
            group.rollouts += made_up(group, 4)
            course.show(group)
    for _ in range(DRAW // 2):
        course.choose()
    return course


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(("many", "later"), [SMALL, pytest.param(*WHOLE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("names", together(), ids="-".join)
def test_memory_and_choices_are_those_of_one_that_was_never_stopped(
    names: tuple[str, str, str], many: int, later: int, model: Path, tmp_path: Path
) -> None:
    course = taught(Course(control_of(names, many, model)), many)
    written = checkpoint.write(tmp_path, 1, course.control, {})
    again = Course(control_of(names, many, model), course.number, list(course.draw))
    checkpoint.read(written, again.control, lambda number: course.draw[0])
    assert files_of(checkpoint.write(tmp_path / "again", 1, again.control, {})) == files_of(written)
    choices = [[each.choose() for _ in range(later)] for each in (course, again)]
    assert choices[0] == choices[1]
    after = [checkpoint.write(tmp_path / str(i), 2, each.control, {}) for i, each in enumerate((course, again))]
    assert files_of(after[0]) == files_of(after[1]) != files_of(written)


def test_a_choice_among_the_tasks_of_a_pilot_goes_on_where_it_was() -> None:
    """MostVaried reads what it chose from the pilot's ledger again, and remembers how many it has given out."""
    used, fresh = MostVaried("ledger.db", 3), MostVaried("ledger.db", 3)
    for sampler in (used, fresh):
        sampler._chosen = [(ENVS[0].task(index), 0.5) for index in range(3)]
    for _ in range(20_000):
        used.next(0, Counts())
    fresh.restore(json.loads(json.dumps(used.state())))
    assert [fresh.next(0, Counts()) for _ in range(200)] == [used.next(0, Counts()) for _ in range(200)]
