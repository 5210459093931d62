"""Figures of a step, counted by hand."""

from __future__ import annotations

import pytest

from strop.observe.metrics import Tally
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
