"""Groups that came to nothing: counted by gate and by what the policy did, on purpose or not."""

from __future__ import annotations

from dataclasses import dataclass

from strop.control.starvation import Dropped
from strop.filter.apply_gates import passes
from strop.roles import Gate
from strop.types import GateResult, Group, Origin
from tests.building import make_group


@dataclass(frozen=True)
class Flat(Gate):
    def __call__(self, group: Group) -> GateResult:
        return GateResult(None, f"all are {group.rewards[0]:g}") if group.rewards.std() == 0 else GateResult(group)


@dataclass(frozen=True)
class Odd(Gate):
    """Does not say why."""

    def __call__(self, group: Group) -> GateResult:
        return GateResult(None) if group.number % 2 else GateResult(group)


def heard(*groups: Group) -> Dropped:
    dropped = Dropped()
    for group in groups:
        dropped.add(group, passes(group, (Flat(), Odd())))
    return dropped


def test_by_gate_by_reason_and_by_what_the_policy_did() -> None:
    helped = make_group([0.0, 0.0, 1.0])
    helped.rollouts[2].origin = Origin.GUIDED
    shown = make_group([1.0, 1.0])
    for rollout in shown.rollouts:
        rollout.origin = Origin.TEACHER
    right, wrong = make_group([1.0, 1.0]), make_group([0.0, 0.0])
    dropped = heard(right, wrong, wrong, make_group([1.0, 0.0], number=1), make_group([1.0, 0.0]), shown)
    dropped.add(helped, GateResult(None, "helped", "Other"))
    assert dropped.gates["Flat"] == {"all are 0": 2, "all are 1": 2} and dropped.gates["Odd"] == {"Odd": 1}
    assert (dropped.right, dropped.wrong, dropped.count) == (1, 3, 6), "a demonstration says nothing of the policy"
    told = dropped.told()
    assert "6 groups were dropped meanwhile: Flat 4 (2x all are 1, 2x all are 0), Odd 1 (1x Odd), Other 1" in told
    assert "right in 1 of them and wrong in 3: the run needs easier tasks" in told


def test_what_is_meant_counts_only_while_nothing_else_comes() -> None:
    skipped = [make_group([], number=number) for number in range(60)]
    dropped = heard(*skipped)
    assert dropped.count == 0 and dropped.is_too_many(1) and not dropped.is_too_many(2)
    assert dropped.told().startswith("the last 60 groups were left out on purpose (60x it was given no rollout)")
    dropped.add(make_group([1.0, 0.0]), GateResult(make_group([1.0, 0.0])))
    assert not dropped.is_too_many(1), "one was kept"
    assert dropped.num_seen == 61


def test_a_env_that_fails_and_a_prompt_that_does_not_fit_are_told_too() -> None:
    dropped = heard(make_group([0.0], failed=[0]))
    dropped.leave_out("prompts", "its prompt fills the context")
    assert "others 1 (1x none of 1 rollouts counts" in dropped.told() and "prompts 1 (1x its prompt" in dropped.told()
    assert (dropped.right, dropped.wrong) == (0, 0) and "right in" not in dropped.told()
    dropped.clear()
    assert dropped.told() == "nothing is running"
