from __future__ import annotations

from strop.recipes.guide.guide import ContrastInComparisonGroup
from strop.types import Group
from tests.building import make_group


def in_comparison_groups(rewards: list[float], comparison_groups: list[str], failed: tuple[int, ...] = ()) -> Group:
    group = make_group(rewards, failed=failed)
    for rollout, comparison_group in zip(group.rollouts, comparison_groups, strict=True):
        rollout.comparison_group = comparison_group
    return group


def kept(group: Group) -> list[str] | None:
    verdict = ContrastInComparisonGroup()(group)
    return None if verdict.group is None else [rollout.id for rollout in verdict.group.rollouts]


def test_comparison_groups_with_contrast_stay() -> None:
    lost = in_comparison_groups([0.0, 0.0, 1.0, 0.0], ["", "", "hinted", "hinted"])
    assert kept(lost) == ["0-2", "0-3"]
    assert kept(in_comparison_groups([1.0, 0.0, 1.0, 1.0], ["", "", "hinted", "hinted"])) == ["0-0", "0-1"]
    assert kept(in_comparison_groups([0.0, 0.0, 1.0, 1.0], ["", "", "hinted", "hinted"])) is None, (
        "between them does not count"
    )


def test_with_one_comparison_group_a_group_stays_or_goes_as_a_whole() -> None:
    assert kept(make_group([1.0, 0.0])) == ["0-0", "0-1"] and kept(make_group([1.0, 1.0])) is None


def test_what_failed_makes_no_contrast() -> None:
    assert kept(in_comparison_groups([0.0, 0.0, 1.0], ["", "", ""], failed=(2,))) is None
    assert (
        ContrastInComparisonGroup()(make_group([0.5, 0.5])).reason == "no reward variance in any of 1 comparison groups"
    )
