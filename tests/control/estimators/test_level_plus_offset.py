"""Levels and offsets: a fold by hand, a plain loop beside it, late evidence, and 20,000 tasks saved and read again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, pi, sqrt
from pathlib import Path

import numpy as np
import pytest

from strop.control.estimators.level_plus_offset import Offsets
from strop.control.estimators.support.task_table import keys_of
from strop.errors import CheckpointError, ConfigurationError
from strop.success import SURVIVAL, kind
from strop.types import SUCCESS, Group, Origin, Task
from tests.building import make_group


def task(name: str, level: int = 1) -> Task:
    return Task((), "", "env", level, id=name)


def group(of: Task, right: int, count: int, version: int = 0, number: int = 0) -> Group:
    made = make_group([1.0] * right + [0.0] * (count - right), number=number)
    made.task, made.version = of, version
    return made


def logistic(value: float) -> float:
    return 1 / (1 + exp(-value))


def forecast(logit: float, tau: float, kind: float) -> tuple[float, float]:
    spread = 1 / tau + 1 / kind
    mean = logistic(logit / sqrt(1 + pi * spread / 8))
    return mean, (mean * (1 - mean)) ** 2 * spread


def predicted(estimator: Offsets, of: Task, step: int) -> tuple[float, float]:
    means, variances = estimator.predict([of], step)
    return float(means[0]), float(variances[0])


def likeliest(slope: Callable[[float], float]) -> float:
    """Where a falling slope is 0, within 8, by halving."""
    low, high = -8.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return low


def test_a_fold_by_hand() -> None:
    """3 of 4 and 0 of 4 right at version 0, folded at step 1.

    Kind: p = 1/2, so each group brings .9 * 4 / 4 = .9 information; surprise .9 * (1 - 2) = -.9; with the prior's 1
    that is -.9 / 2.8 = -.3214. Then .995 (3 - 4 logistic(level + o)) = .02 o at o = 1.3833: logistic(1.0619) = .74305,
    .995 (3 - 2.9722) = .0277 as .02 * 1.3833 is. Information .995 * 4 * .74305 * .25695 = .7599.
    """
    estimator, a, b = Offsets(), task("a"), task("b")
    estimator.observe(group(a, 3, 4))
    estimator.observe(group(b, 0, 4, number=1))
    assert estimator._tasks.count == 0, "only filed"
    level = -0.32142857
    assert predicted(estimator, a, 1) == pytest.approx(forecast(level + 1.3833, 1.7599, 2.8), abs=1e-4)
    low = likeliest(lambda o: 0.995 * (0 - 4 * logistic(level + o)) - 0.02 * o)
    p = logistic(level + low)
    assert predicted(estimator, b, 1) == pytest.approx(forecast(level + low, 1 + 3.98 * p * (1 - p), 2.8), abs=1e-4)
    assert predicted(estimator, task("unseen"), 1) == pytest.approx(forecast(level, 1.0, 2.8), abs=1e-6)
    assert predicted(estimator, task("other", 2), 1) == pytest.approx(forecast(0.0, 1.0, 1.0), abs=1e-6)
    later = forecast(level + 1.3833, 1 + 0.7599 * 0.995**9, 1 + 1.8 * 0.9**9)
    assert predicted(estimator, a, 10) == pytest.approx(later, abs=1e-4), "what is known fades by version"


@dataclass
class Plain:
    """The same rule in plain loops: numbers in dicts, one group after the other, offsets by halving."""

    levels: dict[int, list[float]] = field(default_factory=dict)  # logit, known, version
    offsets: dict[str, list[float]] = field(default_factory=dict)

    def fold(self, groups: list[tuple[Task, int, int, int]], step: int) -> None:
        """Of task, right, count and version."""
        sums: dict[int, list[float]] = {}
        for of, right, count, version in groups:
            p = logistic(self.levels.get(of.level, [0])[0] + self.offsets.get(of.id, [0])[0])
            total = sums.setdefault(of.level, [0.0, 0.0])
            total[0] += 0.9 ** (step - version) * (right - count * p)
            total[1] += 0.9 ** (step - version) * count * p * (1 - p)
        for level, (surprise, information) in sums.items():
            logit, known, at = self.levels.get(level, [0.0, 0.0, 0])
            known = known * 0.9 ** (step - at) + information
            self.levels[level] = [logit + min(max(surprise / (1 + known), -1), 1), known, step]
        for name in {of.id for of, *_ in groups}:
            self._move(name, [each for each in groups if each[0].id == name], step)

    def _move(self, name: str, groups: list[tuple[Task, int, int, int]], step: int) -> None:
        before, known, at = self.offsets.get(name, [0.0, 0.0, 0])
        known, level = known * 0.995 ** (step - at), self.levels[groups[0][0].level][0]
        weights = [0.995 ** (step - version) for *_, version in groups]
        right = sum(w * k for w, (_, k, _, _) in zip(weights, groups, strict=True))
        count = sum(w * n for w, (_, _, n, _) in zip(weights, groups, strict=True))

        def slope(o: float) -> float:
            return right - count * logistic(level + o) - known * (o - before) - 0.02 * o

        offset = likeliest(slope)
        p = logistic(level + offset)
        self.offsets[name] = [offset, known + count * p * (1 - p), step]


def test_a_long_stream_with_delays_and_repeats_as_plain_loops_have_it() -> None:
    stream, estimator, plain = random.Random(0), Offsets(), Plain()
    tasks = [task(f"task {number}", number % 3) for number in range(12)]
    for step in range(1, 40):
        came = []
        for number in range(stream.randint(0, 9)):
            of, count = stream.choice(tasks), stream.randint(1, 16)
            right = sum(stream.random() < tasks.index(of) / 11 for _ in range(count))
            version = max(step - stream.randint(1, 5), 0)
            came.append((version, number, of, right, count))
            estimator.observe(group(of, right, count, version, number))
        plain.fold([(of, right, count, version) for version, _, of, right, count in sorted(came)], step)
        for of in tasks:
            logit = plain.levels.get(of.level, [0.0])[0] + plain.offsets.get(of.id, [0.0])[0]
            ages = [(0.995, plain.offsets.get(of.id)), (0.9, plain.levels.get(of.level))]
            known = [1.0 if row is None else 1 + row[1] * memory ** (step - row[2]) for memory, row in ages]
            assert predicted(estimator, of, step) == pytest.approx(forecast(logit, *known), abs=1e-3)
    assert min(row[0] for row in plain.offsets.values()) < -1 < 1 < max(row[0] for row in plain.offsets.values())


def test_bounds_hold_however_clear_the_evidence() -> None:
    estimator = Offsets()
    estimator.observe(group(task("hard"), 0, 4_000))
    estimator.observe(group(task("easy"), 4_000, 4_000, number=1))
    estimator.predict([], 1)
    assert sorted(estimator._tasks.rows()["logit"].tolist()) == [-8.0, 8.0]
    level = Offsets()
    level.observe(group(task("a"), 1000, 1000))
    level.predict([], 1)
    assert level._kinds.rows()["logit"].tolist() == [1.0], "a kind's level moves by 1 at most"


def test_the_order_in_which_groups_come_changes_no_bit() -> None:
    stream = random.Random(3)
    groups = [
        group(task(f"task {n % 40}", n % 3), stream.randint(0, 7), 7, version=n % 5, number=n) for n in range(200)
    ]
    told, asked = [], [task(f"task {number}", level) for number in range(50) for level in range(3)]
    for seed in range(3):
        estimator, shuffled = Offsets(), random.Random(seed).sample(groups, len(groups))
        for each in groups if seed == 0 else shuffled:
            estimator.observe(each)
        told.append(estimator.predict(asked, 6))
    assert all(np.array_equal(one, two) for other in told[1:] for one, two in zip(told[0], other, strict=True))
    assert len(set(told[0][0].tolist())) > 40


def test_evidence_counts_from_the_next_version_on_and_once() -> None:
    estimator, a = Offsets(), task("a")
    before = predicted(estimator, a, 3)
    estimator.observe(group(a, 4, 4, version=3))
    assert predicted(estimator, a, 3) == before == predicted(estimator, a, 1), "others of this version may still come"
    after = predicted(estimator, a, 4)
    assert after[0] > before[0] + 0.1 and predicted(estimator, a, 4) == after


def test_late_evidence_counts_less() -> None:
    """20 versions late, a kind's evidence weighs .9^20 = .12 as much: seen at another task of the kind."""
    prompt, late = Offsets(), Offsets()
    for estimator, version in ((prompt, 19), (late, 0)):
        estimator.observe(group(task("a"), 3, 4, version=version))
    assert 0.5 < predicted(late, task("b"), 20)[0] < predicted(prompt, task("b"), 20)[0] - 0.05
    # and of two groups at one task the newer one decides
    for first, last, low in ((0, 199, True), (199, 0, False)):
        estimator = Offsets()
        estimator.observe(group(task("a"), 0, 4, version=last))
        estimator.observe(group(task("a"), 4, 4, version=first, number=1))
        estimator.predict([], 200)
        assert (estimator._tasks.rows()["logit"][0] < 0) == low


def test_a_task_moves_with_its_kind() -> None:
    """Only others of its kind were tried since: an offset stays, the level does not."""
    estimator, hard = Offsets(), task("hard")
    for step in range(1, 60):
        estimator.observe(group(task("other"), 8 if step > 5 else 4, 8, version=step - 1, number=2 * step))
        if step <= 5:
            estimator.observe(group(hard, 1, 8, version=step - 1, number=2 * step + 1))
        if step == 6:
            before = predicted(estimator, hard, step)[0]
    assert predicted(estimator, hard, 60)[0] > 2 * before


def test_only_outcomes_of_the_policys_own_rollouts_count() -> None:
    plain, other = Offsets(), Offsets()
    plain.observe(group(task("a"), 3, 4))
    mixed = make_group([0.9, 0.1, 1.0, 1.0, 1.0], failed=[3], pruned=[4])  # shaped sums
    for rollout, outcome in zip(mixed.rollouts, (1.0, 0.0, 1.0, 1.0, 1.0), strict=True):
        rollout.facts[SUCCESS] = outcome
    mixed.rollouts[0].facts[SURVIVAL] = 1 / 3  # stands for three
    mixed.rollouts[2].origin = Origin.GUIDED
    mixed.task = task("a")
    other.observe(mixed)
    assert predicted(plain, task("a"), 1) == pytest.approx(predicted(other, task("a"), 1), abs=1e-6)
    nothing = make_group([1.0, 1.0], failed=[0], pruned=[1])
    before = plain.state()
    plain.observe(nothing)
    assert plain.state() == before


def test_whoever_has_keys_is_told_the_same_without_tasks() -> None:
    estimator, tasks = Offsets(), [task("a"), task("b"), task("c", 2)]
    estimator.observe(group(tasks[0], 4, 4))
    keys = keys_of([each.id for each in tasks]), keys_of([kind(each) for each in tasks])
    assert all(
        np.array_equal(*pair) for pair in zip(estimator.predict(tasks, 1), estimator.told(*keys, 1), strict=True)
    )


def test_it_goes_on_from_a_folder_to_the_same_bits_with_25_000_tasks(tmp_path: Path) -> None:
    first, second, stream = Offsets(), Offsets(), random.Random(1)
    asked = [task(f"task {number}", number % 7) for number in range(26_000)]
    for number in range(25_000):
        first.observe(group(asked[number], stream.randint(0, 3), 3, version=number // 5000, number=number))
        if number % 5000 == 4999:
            first.predict([], number // 5000 + 1)
    first.observe(group(asked[3], 1, 2, version=5, number=25_000))  # filed and not yet folded
    first.save(tmp_path)
    second.resume(tmp_path)
    second.restore(json.loads(json.dumps(first.state())))
    for step in (5, 6, 7):
        one, two = first.predict(asked, step), second.predict(asked, step)
        assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])
        for estimator in (first, second):
            for number in range(step, 2000, 3):
                estimator.observe(group(asked[number], number % 3, 2 + number % 3, version=step, number=number))
    assert first.learn([]) == second.learn([]) and first._tasks.count == 25_000
    assert first._tasks.num_bytes / 25_000 < 60


def test_metrics_compare_what_was_predicted_with_what_came() -> None:
    """Predicted .5 and .9, came 1/4 and 1: squared errors .0625 and .01, spread .2."""
    groups = [group(task("a"), 1, 4), group(task("b"), 2, 2), make_group([1.0], failed=[0])]
    for each, mean in zip(groups, (0.5, 0.9, 0.1), strict=True):
        each.predicted = (mean, 0.0)
    metrics = Offsets().learn(groups)
    assert metrics["estimator_loss"] == pytest.approx((0.0625 + 0.01) / 2)
    assert metrics["estimator_bias"] == pytest.approx((0.25 - 0.1) / 2) and metrics[
        "estimator_spread"
    ] == pytest.approx(0.2)
    assert Offsets().learn([])["estimator_spread"] == 0.0 == metrics["tasks_known"]


def test_files_that_are_not_its_own_are_refused(tmp_path: Path) -> None:
    Offsets().save(tmp_path)
    np.save(tmp_path / "tasks.npy", np.zeros(3))
    with pytest.raises(CheckpointError, match="holds float64"):
        Offsets().resume(tmp_path)
    np.save(tmp_path / "tasks.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(CheckpointError, match="cannot read"):
        Offsets().resume(tmp_path)


@pytest.mark.parametrize("memory", [0.0, 1.1])
def test_memories_that_are_none_are_refused(memory: float) -> None:
    with pytest.raises(ConfigurationError, match="above 0 and at most 1"):
        Offsets(kind_memory=memory)
    with pytest.raises(ConfigurationError, match="above 0 and at most 1"):
        Offsets(task_memory=memory)
