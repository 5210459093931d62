"""DART's success pool: which groups get a past success, and its state after a crash."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strop.filter.gates.support import success_cache
from strop.recipes.system.dart import SuccessPool
from strop.storage.ledger.ledger import Ledger
from strop.types import Group, Origin
from tests.building import TASK, make_group, turn


def eight(rewards: list[float], number: int, versions: list[int] | None = None) -> Group:
    group = make_group(rewards, [3] * len(rewards), number=number)
    for rollout, version in zip(group.rollouts, versions or [number] * len(rewards), strict=True):
        rollout.turns = (turn(3, version),)
    return group


def test_a_past_success_replaces_one_of_eight_failures() -> None:
    pool = SuccessPool()
    first = eight([0, 1, 0, 1, 0, 0, 0, 0], 0)
    assert pool(first).group is first
    zeros = eight([0] * 8, 5, [5, 5, 4, 5, 5, 4, 5, 5])
    kept = pool(zeros).group
    assert kept is not None and len(zeros.rollouts) == 8
    assert [rollout.id for rollout in kept.rollouts] == [*(f"5-{i}" for i in (0, 1, 3, 4, 5, 6, 7)), "5/borrowed"]
    borrowed = kept.rollouts[-1]
    assert (borrowed.reward, borrowed.origin, borrowed.oldest_version) == (1.0, Origin.REPLAYED, 0)
    assert first.rollouts[3].origin is Origin.POLICY  # the newest success, which is itself unchanged
    borrowed.set_advantage(2.0)
    again = pool(eight([0] * 8, 6)).group
    assert again is not None and again.rollouts[-1].advantages is None


def test_a_replayed_success_has_no_fields_of_its_first_training() -> None:
    pool, first = SuccessPool(), eight([1, 0], 0)
    as_borrowed = first.rollouts[0]
    as_borrowed.values = as_borrowed.returns = as_borrowed.advantages = np.ones(3, dtype=np.float32)
    as_borrowed.policy_statistics["entropy"] = np.ones(3)
    pool(first)
    kept = pool(eight([0, 0], 1)).group
    assert kept is not None
    borrowed = kept.rollouts[-1]
    assert (borrowed.values, borrowed.returns, borrowed.advantages, borrowed.policy_statistics) == (
        None,
        None,
        None,
        {},
    )


def test_never_solved_and_always_solved_groups_are_dropped() -> None:
    pool = SuccessPool()
    assert pool(eight([0] * 8, 0)).reason == "never solved"
    right = pool(eight([1] * 8, 1))
    assert right.group is None and right.reason == "every rollout is right"
    assert pool(eight([0] * 8, 2)).group is not None  # its success was stored all the same
    assert pool(make_group([1.0, 0.0], failed=[0, 1])).reason == "no rollout counts"
    other = replace(eight([0] * 8, 3), task=replace(TASK, id="other"))
    assert pool(other).reason == "never solved"


def test_the_tasks_solved_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(success_cache, "_KNOWN", 2)
    pool = SuccessPool()
    for name in "abac":
        pool(replace(eight([1, 0], 0), task=replace(TASK, id=name)))
    assert list(pool.state()["newest"]) == ["a", "c"]


def test_its_state_survives_as_json_and_a_kept_group_as_rows(tmp_path: Path) -> None:
    pool, other = SuccessPool(), SuccessPool()
    pool(eight([0, 1], 9))
    other.restore(json.loads(json.dumps(pool.state())))
    zeros, ledger = eight([0, 0], 0), Ledger(tmp_path / "ledger.db")
    ours, theirs = pool(zeros).group, other(zeros).group
    assert ours is not None and theirs is not None
    ledger.admitted(0, TASK, 1)
    ledger.finished(zeros, ours, "", 1)
    assert ledger.waiting() == {0: 1}
    read = ledger.group(0)
    assert ledger.counts() == {"gated": 1, "waiting": 2} and not ledger.violations()
    for found in (theirs, read):
        assert [rollout.id for rollout in found.rollouts] == ["0-1", "0/borrowed"]
        as_borrowed, back = ours.rollouts[-1], found.rollouts[-1]
        assert (back.reward, back.origin, back.task) == (1.0, Origin.REPLAYED, TASK)
        for name in ("tokens", "logprobs", "versions", "prompt"):
            np.testing.assert_array_equal(getattr(back.turns[0], name), getattr(as_borrowed.turns[0], name))
    ledger.trained([ours], 2)
    assert ledger.counts() == {"gated": 1, "trained": 2} and not ledger.violations()
    ledger.close()
