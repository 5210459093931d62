from __future__ import annotations

import json

import pytest

from strop.replay.fifo import Fifo
from strop.types import Group
from tests.building import make_group


def numbers(groups: list[Group] | None) -> list[int] | None:
    return None if groups is None else [group.number for group in groups]


def filled(*order: int) -> Fifo:
    buffer = Fifo()
    for number in order:
        buffer.add(make_group([1.0], number=number))
    return buffer


def test_waits_until_there_are_enough() -> None:
    buffer = filled(2)
    assert buffer.sample(2, step=0) is None
    assert len(buffer) == 1
    buffer.add(make_group([1.0], number=5))
    assert numbers(buffer.sample(2, step=0)) == [2, 5]


def test_draws_in_the_order_of_admission_each_once() -> None:
    buffer = filled(4, 0, 3, 1)
    first = buffer.sample(2, step=0)
    assert numbers(first) == [0, 1]
    assert first is not None and [group.times_trained for group in first] == [1, 1]
    assert numbers(buffer.sample(2, step=1)) == [3, 4]
    assert buffer.sample(1, step=2) is None


def test_the_same_group_cannot_enter_twice() -> None:
    with pytest.raises(ValueError, match="group 3"):
        filled(3, 3)


def test_puts_itself_back() -> None:
    state = json.loads(json.dumps(filled(7, 2).state()))
    assert state == {"numbers": [2, 7]}
    buffer = Fifo()
    buffer.restore(state, lambda number: make_group([1.0], number=number))
    assert buffer.state() == state and len(buffer) == 2
    assert numbers(buffer.sample(2, step=0)) == [2, 7]
