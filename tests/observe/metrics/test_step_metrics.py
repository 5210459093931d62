"""Figures of a step, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.observe.metrics.step_metrics import Tally
from strop.types import Origin, Verdict
from tests.building import make_group


def test_whose_attempts_there_were_and_what_is_known_of_them() -> None:
    group = make_group([1.0, 0.0, 0.0, 1.0], failed=[2])
    group.trajectories[0].origin = Origin.GUIDED
    group.trajectories[2].origin = Origin.TEACHER  # failed: it does not count
    group.trajectories[0].facts, group.trajectories[1].facts = {"noise": 0.3}, {"noise": 0.1}
    group.trajectories[3].rewards = {"outcome": 1.0}
    tally = Tally()
    tally.finished(group, Verdict(group))
    figures = tally.trained([group], 0)
    assert figures["share/guided"] == pytest.approx(1 / 3) and "share/teacher" not in figures
    assert "share/policy" not in figures, "what every run has says nothing"
    assert figures["fact/noise"] == pytest.approx(0.2), "over those that have it"
    assert figures["reward/outcome"] == 1.0


def test_reward_and_contrast_say_what_the_policy_does_by_itself() -> None:
    """It is wrong 3 times of 4; a demonstration, a guided attempt and a kept one are right, and stand beside it."""
    lost, mixed = make_group([0.0, 0.0, 1.0, 1.0]), make_group([0.0, 1.0, 1.0], number=1)
    lost.trajectories[2].origin, lost.trajectories[3].origin = Origin.TEACHER, Origin.GUIDED
    mixed.trajectories[2].origin = Origin.REPLAYED
    for attempt in (*lost.trajectories, *mixed.trajectories):
        attempt.rewards = {"outcome": attempt.reward}
    tally = Tally()
    for group in (lost, mixed):
        tally.finished(group, Verdict(group))
    figures = tally.trained([lost, mixed], 0)
    assert figures["reward"] == figures["reward/outcome"] == 0.25
    assert figures["reward_of/teacher"] == figures["reward_of/guided"] == figures["reward_of/replayed"] == 1.0
    assert figures["no_contrast_share"] == 0.5 and figures["no_contrast_share/all"] == 0.0


def test_where_the_policy_tried_nothing_by_itself_it_has_no_reward() -> None:
    shown = make_group([1.0, 1.0])
    for attempt in shown.trajectories:
        attempt.origin = Origin.TEACHER
    figures = Tally().trained([shown], 0)
    assert not {"reward", "no_contrast_share"} & set(figures)
    assert figures["reward_of/teacher"] == figures["no_contrast_share/all"] == 1.0


def test_a_run_of_its_own_attempts_has_no_figures_of_others() -> None:
    figures = Tally().trained([make_group([1.0, 0.0]), make_group([1.0, 1.0], number=1)], 0)
    assert figures["reward"] == 0.75 and figures["no_contrast_share"] == 0.5
    assert not [name for name in figures if name.startswith(("reward_of/", "share/")) or name.endswith("/all")]


def test_how_much_of_what_was_made_gates_let_through() -> None:
    """4 attempts count (one failed): 1 is kept of 2, none of the other 2; a borrowed one was not made here."""
    first, second = make_group([1.0, 0.0, 0.0], failed=[2]), make_group([1.0, 1.0], number=1)
    borrowed = replace(first.trajectories[0], id="borrowed", origin=Origin.REPLAYED)
    trimmed = replace(first, trajectories=[first.trajectories[0], borrowed])
    tally = Tally()
    tally.finished(first, Verdict(trimmed))
    tally.finished(second, Verdict(None, "all rewards are 1"))
    figures = tally.trained([trimmed], 0)
    assert figures["kept_share"] == 0.25 and figures["dropped_groups"] == 1.0
    assert figures["replayed_share"] == 0.5
    assert tally.trained([trimmed], 1)["kept_share"] == 1.0, "nothing was made since"


def test_a_group_that_a_buffer_gives_again_is_replayed() -> None:
    first, again = make_group([1.0, 0.0]), make_group([1.0, 0.0], number=1)
    first.times_trained, again.times_trained = 1, 2
    assert Tally().trained([first, again], 0)["replayed_share"] == 0.5
