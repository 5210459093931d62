"""ARPO's replay: which groups borrow, what, and that a pool put back lends the same."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from strop.errors import ConfigurationError
from strop.recipes.replay.arpo_gui import BorrowedSuccess
from strop.training.advantages.group_relative import GroupStandard
from strop.types import SUCCESS, Group, Origin, Task
from tests.building import TASK, advantages_of, make_group, turn


def paid(pay: list[float], number: int, task: Task = TASK) -> Group:
    """What the environment paid, and half a point for the format on top of it."""
    group = replace(make_group([each + 0.5 for each in pay], [3] * len(pay), number=number), task=task)
    for rollout, each in zip(group.rollouts, pay, strict=True):
        rollout.rewards, rollout.facts = {"outcome": each, "formatted": 1.0}, {SUCCESS: each}
        rollout.turns = (turn(3, number),)
    return group


def ids(gate: BorrowedSuccess, group: Group) -> list[str]:
    kept = gate(group).group
    assert kept is not None, "no group is dropped"
    return [rollout.id for rollout in kept.rollouts]


def test_a_lost_group_ends_with_exactly_one_positive_advantage() -> None:
    gate = BorrowedSuccess()
    first = paid([0, 1, 0, 0], 3)
    assert gate(first).group is first
    kept = gate(paid([0, 0, 0, 0], 7)).group
    assert kept is not None and [a.id for a in kept.rollouts] == ["7/borrowed", "7-1", "7-2", "7-3"]
    borrowed = kept.rollouts[0]
    assert (borrowed.origin, borrowed.reward, borrowed.task) == (Origin.REPLAYED, 1.5, TASK)
    assert borrowed.turns[0].logprobs.tolist() == first.rollouts[1].turns[0].logprobs.tolist() == [-1.0] * 3
    assert borrowed.turns[0].versions.tolist() == [-1] * 3 and first.rollouts[1].turns[0].versions.tolist() == [3] * 3
    assert borrowed.num_sampled == 0, "nobody sampled it for this group"
    GroupStandard()([kept])  # rewards 1.5, .5, .5, .5: mean .75, deviation .5
    assert advantages_of(kept) == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-5)


@pytest.mark.parametrize(
    ("pay", "borrows"),
    [
        ([0.0] * 4, True),
        ([0.19] * 4, True),
        ([0.2] * 4, False),
        ([0.0, 0.0, 0.0, 0.11], True),
        ([0, 0, 0, 0.12], False),
    ],
)
def test_only_low_groups_that_differ_in_nothing_borrow(pay: list[float], borrows: bool) -> None:
    """Of 0, 0, 0, x the deviation is .433 x: .048 and .052."""
    gate = BorrowedSuccess()
    gate(paid([1, 0], 0))
    assert ids(gate, paid(pay, 1))[0] == ("1/borrowed" if borrows else "1-0")


def test_pay_of_more_than_a_tenth_is_a_success_of_its_own_task_alone() -> None:
    gate = BorrowedSuccess()
    other = replace(TASK, id="other")
    gate(paid([0.1, 0.0], 0))
    assert ids(gate, paid([0, 0], 1)) == ["1-0", "1-1"], "a tenth is none"
    gate(paid([0.11, 0.0], 2))
    assert ids(gate, paid([0, 0], 3, other)) == ["3-0", "3-1"]
    assert ids(gate, paid([0, 0], 4)) == ["4/borrowed", "4-1"]


def test_no_group_borrows_from_itself_and_what_is_borrowed_or_shown_is_not_lent_again() -> None:
    gate = BorrowedSuccess()
    assert ids(gate, paid([0.15, 0.15], 0)) == ["0-0", "0-1"], "its own successes are kept after it was judged"
    shown = paid([1, 0], 1, replace(TASK, id="other"))
    shown.rollouts[0].origin = Origin.TEACHER
    gate(shown)
    assert ids(gate, paid([0, 0], 2, shown.task)) == ["2-0", "2-1"]


def test_the_last_eight_are_kept_and_each_is_as_likely() -> None:
    gate = BorrowedSuccess(size=8)
    for number in range(12):
        success = paid([1, 0], number)
        success.rollouts[0].facts["made"] = float(number)
        gate(success)
    found = Counter[float]()
    for number in range(100, 900):
        kept = gate(paid([0, 0], number)).group
        assert kept is not None
        found[kept.rollouts[0].facts["made"]] += 1
    assert set(found) == {4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0} and all(abs(n - 100) < 35 for n in found.values())


def test_a_pool_that_was_put_back_lends_the_same() -> None:
    gate, other = BorrowedSuccess(3, seed=5), BorrowedSuccess(3, seed=5)
    for number in range(5):
        gate(paid([1, 0, 1], number))
    other.restore(json.loads(json.dumps(gate.state())))
    for number in range(5, 25):
        ours, theirs = gate(paid([0, 0], number)).group, other(paid([0, 0], number)).group
        assert ours is not None and theirs is not None
        assert ours.rollouts[0].turns[0].tokens.tolist() == theirs.rollouts[0].turns[0].tokens.tolist()
        assert ours.rollouts[0].rewards == theirs.rollouts[0].rewards
    assert gate.state() == other.state() and len(gate.state()["successes"][TASK.id]) == 3
    with pytest.raises(ConfigurationError, match="size >= 1, got 0"):
        BorrowedSuccess(0)
