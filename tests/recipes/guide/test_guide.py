from __future__ import annotations

from strop.recipes.guide.guide import ContrastInFamily
from strop.types import Group
from tests.building import make_group


def in_families(rewards: list[float], families: list[str], failed: tuple[int, ...] = ()) -> Group:
    group = make_group(rewards, failed=failed)
    for attempt, family in zip(group.trajectories, families, strict=True):
        attempt.family = family
    return group


def kept(group: Group) -> list[str] | None:
    verdict = ContrastInFamily()(group)
    return None if verdict.group is None else [attempt.id for attempt in verdict.group.trajectories]


def test_families_with_contrast_stay() -> None:
    lost = in_families([0.0, 0.0, 1.0, 0.0], ["", "", "hinted", "hinted"])
    assert kept(lost) == ["0-2", "0-3"]
    assert kept(in_families([1.0, 0.0, 1.0, 1.0], ["", "", "hinted", "hinted"])) == ["0-0", "0-1"]
    assert kept(in_families([0.0, 0.0, 1.0, 1.0], ["", "", "hinted", "hinted"])) is None, "between them does not count"


def test_with_one_family_a_group_stays_or_goes_as_a_whole() -> None:
    assert kept(make_group([1.0, 0.0])) == ["0-0", "0-1"] and kept(make_group([1.0, 1.0])) is None


def test_what_failed_makes_no_contrast() -> None:
    assert kept(in_families([0.0, 0.0, 1.0], ["", "", ""], failed=(2,))) is None
    assert ContrastInFamily()(make_group([0.5, 0.5])).reason == "no contrast within any of 1 families"
