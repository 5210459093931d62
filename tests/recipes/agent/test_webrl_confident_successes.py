from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.agent.webrl import ConfidentSuccesses
from strop.types import Group, Origin
from tests.building import make_group


def group_of(number: int, probabilities: list[float], rewards: list[float] | None = None) -> Group:
    """Rollouts of two tokens with this geometric mean of probabilities: twice and half as likely as that."""
    group = make_group(rewards or [1.0] * len(probabilities), [2] * len(probabilities), number=number)
    for rollout, probability in zip(group.rollouts, probabilities, strict=True):
        logprobs = np.array([math.log(probability) + 0.1, math.log(probability) - 0.1], dtype=np.float32)
        rollout.turns = (replace(rollout.turns[0], logprobs=logprobs),)
    return group


def sampled(buffer: ConfidentSuccesses, count: int, step: int) -> list[tuple[int, list[str]]]:
    return [(g.number, [t.id for t in g.rollouts]) for g in buffer.sample(count, step) or []]


def test_successes_within_the_probability_bounds_are_replayed() -> None:
    buffer = ConfidentSuccesses(low=0.5, high=0.95, most=1.0)
    buffer.add(group_of(0, [0.499, 0.501, 0.94, 0.96, 0.7, 0.7], [1, 1, 0.6, 1, 0.5, 1]))
    assert sampled(buffer, 1, 0) == [(0, [f"0-{i}" for i in range(6)])], "new groups are complete"
    buffer.add(group_of(1, [0.3], [1.0]))
    assert sampled(buffer, 1, 1) == [(1, ["1-0"]), (0, ["0-1", "0-2", "0-5"])]
    buffer.add(group_of(2, [0.3]))
    assert sampled(buffer, 1, 2) == [(2, ["2-0"]), (0, ["0-1", "0-2", "0-5"])], "group 1 had nothing to keep"


def test_rollouts_with_help_are_not_replayed() -> None:
    buffer = ConfidentSuccesses(most=1.0)
    group = group_of(0, [0.7, 0.7])
    group.rollouts[0].origin = Origin.GUIDED
    buffer.add(group)
    buffer.sample(1, 0)
    buffer.add(group_of(1, [0.3]))
    assert sampled(buffer, 1, 1)[1] == (0, ["0-1"])


def test_old_groups_are_bounded_per_new_one_and_too_few_new_ones_give_none() -> None:
    buffer = ConfidentSuccesses(most=2.0)
    for number in range(10):
        buffer.add(group_of(number, [0.7]))
    assert len(sampled(buffer, 10, 0)) == 10 and len(buffer) == 0
    assert buffer.sample(1, 1) is None, "old groups do not replace new ones"
    for number in range(10, 12):
        buffer.add(group_of(number, [0.7]))
    found = sampled(buffer, 2, 1)
    assert [number for number, _ in found[:2]] == [10, 11] and len({number for number, _ in found}) == 6
    with pytest.raises(ValueError, match="already in the buffer"):
        buffer.add(group_of(11, [0.7]))


def test_a_restored_buffer_samples_the_same() -> None:
    groups = {number: group_of(number, [0.7]) for number in range(12)}
    buffer, other = ConfidentSuccesses(most=0.5, seed=3), ConfidentSuccesses(most=0.5, seed=3)
    for number in range(8):
        buffer.add(groups[number])
    buffer.sample(6, 0)
    other.restore(buffer.state(), lambda number: replace(groups[number]))
    assert len(other) == len(buffer) == 2 and other.state() == buffer.state()
    for each in (buffer, other):
        for number in range(8, 12):
            each.add(replace(groups[number]))
    assert sampled(buffer, 6, 1) == sampled(other, 6, 1)


def test_bounds_are_checked() -> None:
    for fields in ({"low": 0.95}, {"high": 1.1}, {"most": -1.0}):
        with pytest.raises(ConfigurationError, match="0 <= low < high <= 1 and most >= 0"):
            ConfidentSuccesses(**fields)  # type: ignore[arg-type]
