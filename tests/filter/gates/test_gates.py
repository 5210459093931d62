from __future__ import annotations

import pytest

from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.successes_only import Successes
from strop.filter.gates.zero_variance import ZeroVariance
from strop.roles import Gate
from strop.types import Group
from tests.building import make_group


def kept_ids(group: Group | None) -> list[str]:
    assert group is not None
    return [rollout.id for rollout in group.rollouts]


def test_zero_variance_drops_groups_without_contrast() -> None:
    gate_result = ZeroVariance()(make_group([1.0, 1.0, 1.0]))
    assert gate_result.group is None
    assert gate_result.reason == "all rewards are 1"


def test_zero_variance_keeps_the_group_itself() -> None:
    group = make_group([1.0, 0.0])
    assert ZeroVariance()(group).group is group


def test_a_failed_rollout_is_no_contrast() -> None:
    assert ZeroVariance()(make_group([1.0, 0.0, 1.0], failed=[1])).group is None


def test_successes_keeps_what_reaches_the_threshold() -> None:
    group = make_group([1.0, 0.5, 0.7 + 0.2 + 0.1, 1.0], failed=[3], number=7)
    gate_result = Successes()(group)
    assert kept_ids(gate_result.group) == ["7-0", "7-2"]
    assert gate_result.group is not None and gate_result.group.number == 7
    assert gate_result.reason == "kept 2 of 4 rollouts"
    assert len(group.rollouts) == 4


def test_successes_drops_a_group_without_any() -> None:
    gate_result = Successes(threshold=0.9)(make_group([0.5, 0.0]))
    assert gate_result.group is None
    assert gate_result.reason == "no success reaches 0.9"


def test_best_and_worst_are_a_pair_in_that_order() -> None:
    group = make_group([0.5, 0.0, 1.0, 1.0, 0.0, 9.0], failed=[5])
    assert kept_ids(BestAndWorst()(group).group) == ["0-2", "0-1"]  # the first of equals
    assert len(group.rollouts) == 6


def test_best_and_worst_drops_equals() -> None:
    gate_result = BestAndWorst()(make_group([0.5, 0.5]))
    assert gate_result.group is None
    assert gate_result.reason == "all rewards are 0.5"


@pytest.mark.parametrize("gate", [ZeroVariance(), Successes(), BestAndWorst()], ids=repr)
def test_a_group_the_env_failed_is_dropped_with_a_reason(gate: Gate) -> None:
    gate_result = gate(make_group([1.0, 0.0], failed=[0, 1]))
    assert gate_result.group is None
    assert gate_result.reason
