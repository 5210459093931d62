"""DPS's chains by hand and against the filter run version by version in plain loops."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.select.dps import Dynamics
from strop.types import Group
from tests.control.samplers.groups import seen

ENV = Arithmetic(4)
TASK = ENV.task(0)
REWARDS = {0: [0.0, 0.0, 0.0], 1: [1.0, 0.0, 0.0], 2: [1.0, 1.0, 1.0]}


def sampler(keep: float = 0.7, tasks: int = 4) -> Dynamics:
    made = Dynamics((ENV,), tasks, keep)
    for _ in range(tasks):
        made.next(0, Counts())  # a pool knows what it gave out
    return made


def group(state: int, version: int = 0, index: int = 0) -> Group:
    return seen(ENV.task(index), REWARDS[state], 10 * version + index, version)


def filtered(states: dict[int, int], until: int, keep: float) -> list[float]:
    """Where one task stands at version `until`, if it showed these states at these versions: one step each."""
    counts = [[1.0] * 3 for _ in range(3)]  # [to][from]
    now = [1 / 3] * 3
    for version in range(until):
        table = normalized(counts)
        counts = [[keep * counts[j][i] + 1 - keep for i in range(3)] for j in range(3)]
        if version in states:
            shown = states[version]
            moves = [now[i] * table[shown][i] for i in range(3)]
            for i in range(3):
                counts[shown][i] += moves[i] / sum(moves)
            now = [float(j == shown) for j in range(3)]
        else:
            now = [sum(table[j][i] * now[i] for i in range(3)) for j in range(3)]
    return [sum(normalized(counts)[j][i] * now[i] for i in range(3)) for j in range(3)]


def normalized(counts: list[list[float]]) -> list[list[float]]:
    return [[counts[j][i] / sum(counts[k][i] for k in range(3)) for i in range(3)] for j in range(3)]


@pytest.mark.parametrize(("state", "expected"), [(0, [0.4, 0.3, 0.3]), (1, [0.3, 0.4, 0.3]), (2, [0.3, 0.3, 0.4])])
def test_one_observation_by_hand(state: int, expected: list[float]) -> None:
    made = sampler()
    made.observe(group(state))
    assert made.probabilities(1)[0] == pytest.approx(expected)
    assert made.probabilities(1)[1:] == pytest.approx(np.full((3, 3), 1 / 3)), "of the others nothing is known"


def test_endless_mixed_groups_lead_where_the_card_says() -> None:
    made = sampler()
    for version in range(80):
        made.observe(group(1, version))
    assert made.probabilities(80)[0] == pytest.approx([3 / 19, 13 / 19, 3 / 19])
    assert made.probabilities(200)[0] == pytest.approx([1 / 3] * 3), "left alone it goes back"


@pytest.mark.parametrize("keep", [0.7, 1.0, 0.0])
def test_against_the_filter_version_by_version(keep: float) -> None:
    """Tasks seen at some versions and not at others, groups filed together and apart."""
    rng = random.Random(3)
    made = sampler(keep)
    histories: list[dict[int, int]] = [{} for _ in range(4)]
    for version in range(12):
        for index in range(4):
            if rng.random() < 0.4:
                histories[index][version] = rng.randrange(3)
                made.observe(group(histories[index][version], version, index))
        if version % 3 == 2:
            for index in range(4):
                wanted = filtered(histories[index], version + 1, keep)
                assert made.probabilities(version + 1)[index] == pytest.approx(wanted)


def test_late_groups_count_at_their_own_version_in_any_order() -> None:
    there, back = sampler(), sampler()
    groups = [group(2, 1), group(1, 4), group(0, 2, index=1)]
    for each in groups:
        there.observe(each)
    for each in reversed(groups):
        back.observe(each)
    assert there.probabilities(9).tolist() == back.probabilities(9).tolist()
    assert there.probabilities(9)[0] == pytest.approx(filtered({1: 2, 4: 1}, 9, 0.7))
    there.observe(group(1, 2))  # after a later one: as if seen when that one was
    assert there.probabilities(9)[0, 1] > back.probabilities(9)[0, 1]


def test_the_likeliest_to_be_mixed_come_first_and_ties_are_random() -> None:
    made = sampler(tasks=6)
    made.observe(group(1, 0, index=3))
    made.observe(group(2, 0, index=5))
    order = [made.next(1, Counts()) for _ in range(6)]
    assert order[0] == ENV.task(3) and order[-1] == ENV.task(5)
    metrics = made.learn([])
    mean = (4 / 3 + 0.4 + 0.3) / 6
    assert metrics == pytest.approx({"solved_by_some": mean, "probability_gain": 0.4 - mean})
    firsts = {Dynamics((ENV,), 6, seed=seed).next(0, Counts()).id for seed in range(40)}
    assert len(firsts) == 6


def test_the_state_of_a_group() -> None:
    """Failed and pruned rollouts are no evidence; equal halves are no contrast; tasks outside the pool are ignored."""
    shown = []
    for rewards, failed in (([1.0, 0.0], [0]), ([1.0, 0.0], [1]), ([0.5, 0.5], []), ([0.9, 0.9], []), ([0.2, 0.9], [])):
        made = sampler()
        made.observe(seen(TASK, rewards, failed=failed))
        shown.append(int(made.probabilities(1)[0].argmax()))
    assert shown == [0, 2, 0, 2, 1]
    made = sampler()
    made.observe(seen(TASK, [1.0, 0.0], failed=[0], pruned=[1]))
    made.observe(seen(Arithmetic(1).task(0), [1.0, 0.0]))
    assert made.probabilities(1) == pytest.approx(np.full((4, 3), 1 / 3))


def test_state_is_restored() -> None:
    made, again = sampler(), Dynamics((ENV,), 4)
    made.observe(group(1, 0, 2))
    made.probabilities(1)
    made.observe(group(2, 1, 1))
    made.next(1, Counts())
    again.restore(json.loads(json.dumps(made.state())))
    assert again.learn([]) == made.learn([]) and made.learn([])["probability_gain"] > 0
    for each in (made, again):
        each.observe(group(1, 1, 3))  # was in flight
    steps = (2, 2, 3, 3, 3)
    assert [again.next(step, Counts()) for step in steps] == [made.next(step, Counts()) for step in steps]
    assert again.state() == made.state()


def test_nonsense_is_refused() -> None:
    for keep in (-0.1, 1.1):
        with pytest.raises(ConfigurationError, match=f"got {keep}"):
            Dynamics((ENV,), keep=keep)
    with pytest.raises(ConfigurationError, match="got 1 and 0"):
        Dynamics((ENV,), 0)
