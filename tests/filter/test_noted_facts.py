"""Scores and facts of rewards are bounded, and only the reward that grades says how right a rollout is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from strop.filter.reward_values import facts_from_json, from_json
from strop.roles import Reward
from strop.types import Group, Outcome, ScoreRange
from strop.workers.untrusted_answers import NoAnswer, shown
from tests.filter.test_scoring import group_of, outcomes, scored

PAID = [0, 0, 1, 0.0, 0.0, ""]  # a span
UNTRUE_SCORES: list[Any] = [
    1e13,
    -(10**400),
    {"end": 1.0, "spans": [[0, 0, 1, 1e300, 0.0, ""]]},
    {"end": 1.0, "spans": [PAID] * 10_001},
]
UNTRUE_SCORES += [{"end": 1.0, "spans": [[*PAID[:5], str(name)] for name in range(65)]}]
UNTRUE_FACTS: list[Any] = [
    None,
    [],
    {"share": math.nan},
    {"share": 1e300},
    {"share": 10**400},
    {"share": "1"},
    {"share": True},
]
UNTRUE_FACTS += [{"share": [1]}, {"success": 1.5}, {"success": -1}, {"survival": 0}, {"survival": 0.5}, {"": 1}]
UNTRUE_FACTS += [{"x" * 65: 1}, {"\x1b[31mred": 1}, {"\ud800": 1}, {"<b>": 1}, {str(name): 1 for name in range(65)}]


def test_scores_and_facts_that_nobody_vouches_for_are_bounded() -> None:
    for plain in UNTRUE_SCORES:
        with pytest.raises(NoAnswer, match=r"^answered "):
            from_json([plain], 1)
    for plain in UNTRUE_FACTS:
        with pytest.raises(NoAnswer, match=r"^answered "):
            facts_from_json([plain], 1)
    assert facts_from_json([{"success": 1, "item/3": -0.5}], 1) == [{"success": 1.0, "item/3": -0.5}]
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "list that cannot be shown" and shown(10**5000) == "int that cannot be shown"


@dataclass(frozen=True)
class Notes(Reward):
    """Leaves facts, in whatever process it runs."""

    noted: tuple[tuple[str, Any], ...]
    is_new: bool = False  # other names in every call
    grades: ScoreRange | None = None
    weight: float = 1.0

    def __call__(self, group: Group) -> list[float]:
        for rollout in group.rollouts:
            rollout.facts.update(self.noted)
            rollout.facts |= {f"{rollout.completion}/{n}": 1.0 for n in range(60)} if self.is_new else {}
        return [0.5] * len(group.rollouts)


def test_no_reward_declares_success_but_the_one_that_grades() -> None:
    group, forged = group_of("1"), (("success", 1.0), ("share", 0.25))
    scored([Notes(forged), Notes((("success", 0.9),), grades=ScoreRange(0, 2))], group)
    assert group.rollouts[0].facts == {"success": 0.25, "share": 0.25}
    scored([Notes(forged)], alone := group_of("1"))
    assert alone.rollouts[0].success is None


def test_notes_that_are_no_numbers_or_too_many_are_named() -> None:
    scored([Notes((("share", "much"),))], group := group_of("1"))
    assert "noted a fact that is no number" in str(outcomes(group))
    many = [group_of(*map(str, range(n, n + 3))) for n in range(0, 12, 3)]
    scored([Notes((), is_new=True)], *many)
    failed = [rollout.error for group in many for rollout in group.rollouts if rollout.outcome is Outcome.FAILED]
    assert 1 <= len(failed) <= 6 and all("facts of over 512 names" in error for error in failed)
