"""Attempts that chance let go on stand for those that it did not."""

from __future__ import annotations

import pytest

from strop.control.beliefs.counts import Counts
from strop.control.evidence import SURVIVAL
from tests.building import make_group


def test_a_belief_takes_the_weights() -> None:
    group, belief = make_group([1.0, 0.0, 0.0], pruned=[2]), Counts()
    for attempt, probability in zip(group.trajectories, (0.25, 0.5, 0.5), strict=True):
        attempt.facts[SURVIVAL] = probability
    belief.observe(group)
    assert belief.foresee([group.task], 1)[0] == pytest.approx([5 / 8])  # 4 right ones of 6, and one of each before
    again = Counts()
    again.restore(belief.state())
    assert again.state() == belief.state()
