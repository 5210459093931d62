"""The tasks tried last: newest copies, in order, whoever was done first."""

from __future__ import annotations

import json
import random

import numpy as np

from strop.control.estimators.support.recent_outcomes import Support
from strop.types import Group, Task
from tests.building import make_group


def group(name: str, version: int, number: int, right: int = 1, count: int = 2) -> Group:
    made = make_group([1.0] * right + [0.0] * (count - right), number=number)
    made.task, made.version = Task((), "", "env", id=name), version
    return made


def prompt(name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([ord(letter) for letter in name])


def test_the_newest_of_each_task_are_kept_in_any_order_of_arrival() -> None:
    groups = [group("abcde"[n % 5], n // 3, n, right=n % 4, count=3) for n in range(14) if n != 9]
    for seed in range(6):
        support = Support(3)
        for each in random.Random(seed).sample(groups, len(groups)):
            support.add(each, prompt(each.task.id))
        # the last ones: 11 (b), 12 (c) and 13 (d)
        assert [row.tolist() for row in support.prompts] == [[98], [99], [100]]
        assert support.shares.tolist() == [1.0, 0.0, 1 / 3] and support.counts.tolist() == [3.0] * 3


def test_what_shows_nothing_is_no_support() -> None:
    support = Support(3)
    support.add(make_group([1.0, 1.0], failed=[0], pruned=[1]), prompt("x"))
    assert len(support) == 0


def test_a_restored_support_is_the_same() -> None:
    first, second = Support(4), Support(4)
    for number in range(9):
        first.add(group("abcdef"[number % 6], number // 2, number), prompt("ab"))
    second.restore(json.loads(json.dumps(first.state())))
    late = group("a", 0, 0)
    for support in (first, second):
        support.add(late, prompt("z"))
    assert second.state() == first.state() and len(second) == 4
