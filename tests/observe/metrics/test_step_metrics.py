"""Metrics of a step, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.observe.metrics.step_metrics import Tally
from strop.types import GateResult, Origin
from tests.building import make_group


def test_whose_rollouts_there_were_and_what_is_known_of_them() -> None:
    group = make_group([1.0, 0.0, 0.0, 1.0], failed=[2])
    group.rollouts[0].origin = Origin.GUIDED
    group.rollouts[2].origin = Origin.TEACHER  # failed: it does not count
    group.rollouts[0].facts, group.rollouts[1].facts = {"noise": 0.3}, {"noise": 0.1}
    group.rollouts[3].rewards = {"outcome": 1.0}
    tally = Tally()
    tally.finished(group, GateResult(group))
    metrics = tally.trained([group], 0)
    assert metrics["share/guided"] == pytest.approx(1 / 3) and "share/teacher" not in metrics
    assert "share/policy" not in metrics, "what every run has says nothing"
    assert metrics["fact/noise"] == pytest.approx(0.2), "over those that have it"
    assert metrics["reward/outcome"] == 1.0


def test_reward_and_contrast_say_what_the_policy_does_by_itself() -> None:
    """It is wrong 3 times of 4; a demonstration, a guided rollout and a kept one are right, and stand beside it."""
    lost, mixed = make_group([0.0, 0.0, 1.0, 1.0]), make_group([0.0, 1.0, 1.0], number=1)
    lost.rollouts[2].origin, lost.rollouts[3].origin = Origin.TEACHER, Origin.GUIDED
    mixed.rollouts[2].origin = Origin.REPLAYED
    for rollout in (*lost.rollouts, *mixed.rollouts):
        rollout.rewards = {"outcome": rollout.reward}
    tally = Tally()
    for group in (lost, mixed):
        tally.finished(group, GateResult(group))
    metrics = tally.trained([lost, mixed], 0)
    assert metrics["reward"] == metrics["reward/outcome"] == 0.25
    assert metrics["reward_of/teacher"] == metrics["reward_of/guided"] == metrics["reward_of/replayed"] == 1.0
    assert metrics["no_contrast_share"] == 0.5 and metrics["no_contrast_share/all"] == 0.0


def test_where_the_policy_tried_nothing_by_itself_it_has_no_reward() -> None:
    shown = make_group([1.0, 1.0])
    for rollout in shown.rollouts:
        rollout.origin = Origin.TEACHER
    metrics = Tally().trained([shown], 0)
    assert not {"reward", "no_contrast_share"} & set(metrics)
    assert metrics["reward_of/teacher"] == metrics["no_contrast_share/all"] == 1.0


def test_a_run_of_its_own_rollouts_has_no_metrics_of_others() -> None:
    metrics = Tally().trained([make_group([1.0, 0.0]), make_group([1.0, 1.0], number=1)], 0)
    assert metrics["reward"] == 0.75 and metrics["no_contrast_share"] == 0.5
    assert not [name for name in metrics if name.startswith(("reward_of/", "share/")) or name.endswith("/all")]


def test_how_much_of_what_was_made_gates_let_through() -> None:
    """4 rollouts count (one failed): 1 is kept of 2, none of the other 2; a borrowed one was not made here."""
    first, second = make_group([1.0, 0.0, 0.0], failed=[2]), make_group([1.0, 1.0], number=1)
    borrowed = replace(first.rollouts[0], id="borrowed", origin=Origin.REPLAYED)
    trimmed = replace(first, rollouts=[first.rollouts[0], borrowed])
    tally = Tally()
    tally.finished(first, GateResult(trimmed))
    tally.finished(second, GateResult(None, "all rewards are 1"))
    metrics = tally.trained([trimmed], 0)
    assert metrics["kept_share"] == 0.25 and metrics["dropped_groups"] == 1.0
    assert metrics["replayed_share"] == 0.5
    assert tally.trained([trimmed], 1)["kept_share"] == 1.0, "nothing was made since"


def test_a_group_that_a_buffer_gives_again_is_replayed() -> None:
    first, again = make_group([1.0, 0.0]), make_group([1.0, 0.0], number=1)
    first.times_trained, again.times_trained = 1, 2
    assert Tally().trained([first, again], 0)["replayed_share"] == 0.5
