"""Prioritized level replay: its law by hand, when tasks come again, and memory."""

from __future__ import annotations

import json
from collections import Counter
from math import sqrt

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.prioritized_level_replay import LevelReplay
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.types import Task
from tests.control.samplers.groups import seen

ENV = Arithmetic(4)
PLACES = {ENV.task(index).id: index for index in range(16)}
# mean |A| 1, 2 sqrt(3/16), 2 sqrt(2/9) and 0
EVEN, QUARTER, THIRD, FLAT = [1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0]


def shown(*rewards: list[float], versions: tuple[int, ...] = (0, 0, 0), **fields: float) -> LevelReplay:
    """A sampler whose pool was taken and seen, with these rewards."""
    sampler = LevelReplay((ENV,), len(rewards), **fields)  # type: ignore[arg-type]
    for place, (each, version) in enumerate(zip(rewards, versions, strict=True)):
        sampler.observe(seen(sampler.next(0, Counts()), each, place, version))
    return sampler


def place(task: Task) -> int:
    return PLACES[task.id]


def test_scores_become_probabilities_by_rank_alone() -> None:
    """Ranks 1, 2, 3 at softness 1: 6/11, 3/11, 2/11, whatever the scores are."""
    sampler = shown(FLAT, EVEN, THIRD, softness=1.0, stale=0.0)
    assert sampler.probabilities(0, [0, 1, 2]) == pytest.approx([2 / 11, 6 / 11, 3 / 11])
    assert shown(FLAT, EVEN, QUARTER, softness=1.0, stale=0.0).probabilities(0, [0, 1, 2]) == pytest.approx(
        [2 / 11, 6 / 11, 3 / 11]
    )
    sharp = shown(FLAT, EVEN, THIRD, softness=0.5, stale=0.0).probabilities(0, [0, 1, 2])
    assert sharp == pytest.approx([4 / 49, 36 / 49, 9 / 49])


def test_stale_tasks_have_a_share() -> None:
    """Seen at versions 1, 4 and 2, now at 5: ages 4, 1, 3."""
    sampler = shown(FLAT, EVEN, THIRD, versions=(1, 4, 2), softness=1.0, stale=0.5)
    assert sampler.probabilities(5, [0, 1, 2]) == pytest.approx([1 / 11 + 2 / 8, 3 / 11 + 0.5 / 8, 1.5 / 11 + 1.5 / 8])
    fresh = shown(FLAT, EVEN, THIRD, softness=1.0, stale=1.0)
    assert fresh.probabilities(0, [0, 1, 2]) == pytest.approx([1 / 3] * 3), "all of one age are alike"


def test_equal_scores_are_ranked_by_probability() -> None:
    firsts = Counter(place(shown(EVEN, EVEN, EVEN, softness=0.01, stale=0.0, seed=seed).next(1, Counts())) for seed in range(90))  # fmt: skip # noqa: E501
    assert set(firsts) == {0, 1, 2}


def test_tasks_come_again_with_their_probabilities() -> None:
    counts = Counter[int]()
    for seed in range(2000):
        counts[place(shown(FLAT, EVEN, THIRD, softness=1.0, stale=0.0, seed=seed).next(1, Counts()))] += 1
    for found, probability in zip((counts[0], counts[1], counts[2]), (2 / 11, 6 / 11, 3 / 11), strict=True):
        assert abs(found / 2000 - probability) < 4 * sqrt(probability * (1 - probability) / 2000)


def test_new_ones_come_first_then_with_the_probability_of_what_is_left() -> None:
    again = Counter[bool]()
    for seed in range(600):
        sampler = LevelReplay((ENV,), 8, start=0.5, seed=seed)
        first = [sampler.next(0, Counts()) for _ in range(4)]
        assert [place(task) for task in first] == [0, 1, 2, 3], "in order, until half of the pool was taken"
        for number, task in enumerate(first):
            sampler.observe(seen(task, EVEN, number))
        again[place(sampler.next(1, Counts())) < 4] += 1
    assert abs(again[True] / 600 - 0.5) < 4 * sqrt(0.25 / 600)
    empty = LevelReplay((ENV,), 3)
    assert [place(empty.next(0, Counts())) for _ in range(4)] == [0, 1, 2, 0], "nothing came back yet"


def test_no_task_comes_twice_under_the_same_weights() -> None:
    sampler = shown(FLAT, EVEN, THIRD, softness=0.05)
    assert sorted(place(sampler.next(1, Counts())) for _ in range(3)) == [0, 1, 2]
    assert sorted(place(sampler.next(2, Counts())) for _ in range(3)) == [0, 1, 2]


def test_the_latest_version_counts_whoever_came_last() -> None:
    sampler = shown(FLAT, EVEN, THIRD, versions=(3, 0, 0), softness=1.0, stale=0.0)
    sampler.observe(seen(ENV.task(0), EVEN, 9, version=2))
    assert sampler.probabilities(4, [0, 1, 2]) == pytest.approx([2 / 11, 6 / 11, 3 / 11]), "it was older"
    sampler.observe(seen(ENV.task(1), FLAT, 9, version=1))
    sampler.observe(seen(ENV.task(0), EVEN, 10, version=4))
    assert sampler.probabilities(4, [0, 2, 1]) == pytest.approx([6 / 11, 3 / 11, 2 / 11])


def test_what_failed_is_not_seen_and_what_it_says() -> None:
    sampler = LevelReplay((ENV,), 4, softness=1.0, stale=0.0)
    assert sampler.learn([]) == {"seen_share": 0.0, "preference": 0.0}
    tasks = [sampler.next(0, Counts()) for _ in range(2)]
    sampler.observe(seen(tasks[0], EVEN, failed=[0, 1]))
    sampler.observe(seen(Arithmetic(1).task(0), EVEN))
    assert sampler.learn([])["seen_share"] == 0.0
    sampler.observe(seen(tasks[0], EVEN, 1))
    sampler.observe(seen(tasks[1], FLAT, 2))
    assert sampler.learn([]) == pytest.approx({"seen_share": 0.5, "preference": 2 / 3 - 1 / 2})


def test_it_goes_on_where_it_was() -> None:
    sampler, again = shown(FLAT, EVEN, THIRD), LevelReplay((ENV,), 3)
    sampler.next(1, Counts())
    again.restore(json.loads(json.dumps(sampler.state())))
    for each in (sampler, again):
        each.observe(seen(ENV.task(2), EVEN, 7, version=1))  # was in flight
    steps = (1, 1, 2, 2, 3)
    assert [again.next(step, Counts()) for step in steps] == [sampler.next(step, Counts()) for step in steps]
    assert again.state() == sampler.state()


def test_nonsense_is_refused() -> None:
    for wrong in ((0.0, 0.1, 1.0), (0.1, -0.1, 1.0), (0.1, 1.1, 1.0), (0.1, 0.1, 0.0), (0.1, 0.1, 1.5)):
        with pytest.raises(ConfigurationError, match=f"got {wrong[0]}, {wrong[1]} and {wrong[2]}"):
            LevelReplay((ENV,), 4, *wrong)
