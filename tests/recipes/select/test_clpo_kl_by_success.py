from __future__ import annotations

import math

import pytest

from strop.errors import ConfigurationError
from strop.recipes.select.clpo import KlBySuccess
from tests.building import make_batch, say, written

LOGPROBS, REFERENCE = math.log(0.5), math.log(0.25)
PENALTY = 0.5 - 1 + math.log(2)  # exp(-d) - 1 + d with d = log 2


@pytest.mark.parametrize(
    ("rewards", "factor"),
    [
        ([0.0] * 4, 0.5),
        ([1.0, 0.0, 0.0, 0.0], 0.5),
        ([1.0, 1.0, 0.0, 0.0], 1.0),
        ([1.0] * 3 + [0.0] * 7, 0.5),
        ([1.0] * 4 + [0.0] * 6, 1.0),
    ],
)
def test_half_of_the_penalty_on_hard_tasks_by_hand(rewards: list[float], factor: float) -> None:
    """0 and 1 of 4 are hard, 2 of 4 is not; 3 of 10 is exactly 0.3, and hard."""
    count = len(rewards)
    batch = make_batch([[LOGPROBS]] * count, rewards=rewards, reference=[[REFERENCE]] * count)
    loss, metrics = KlBySuccess()(say([[LOGPROBS]] * count), batch)
    assert written(batch, loss) == pytest.approx([factor * PENALTY] * count)
    assert metrics == pytest.approx({"reference_kl": math.log(2), "hard_share": float(factor < 1)})


def test_groups_are_separate() -> None:
    batch = make_batch([[LOGPROBS]] * 3, groups=[0, 0, 1], rewards=[0.0, 0.0, 1.0], reference=[[REFERENCE]] * 3)
    loss, metrics = KlBySuccess(relief=0.25)(say([[LOGPROBS]] * 3), batch)
    assert written(batch, loss) == pytest.approx([PENALTY / 4, PENALTY / 4, PENALTY])
    assert metrics["hard_share"] == pytest.approx(2 / 3)


def test_it_needs_a_reference() -> None:
    with pytest.raises(ConfigurationError, match="reference"):
        KlBySuccess()(say([[LOGPROBS]]), make_batch([[LOGPROBS]]))
