from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.agent.webrl import TurnProgress
from strop.types import Group
from tests.building import make_group, turn


def two_turns() -> Group:
    """Turns of 2 and 1 tokens with rewards 0.25 and 1; values 0.5 and 0.75 at their first tokens."""
    group = make_group([1.25], turn_rewards=[(0.25, 1.0)])
    group.rollouts[0].turns = (turn(2), turn(1))
    group.rollouts[0].values = np.array([0.5, 0.9, 0.75], dtype=np.float32)
    return group


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        (1.0, [0.5, 0.5, 0.25]),  # .25 + .75 - .5, 1 + 0 - .75
        (0.0, [0.75, 0.75, 0.25]),  # 1.25 - .5, 1 - .75
        (0.5, [0.625, 0.625, 0.25]),
    ],
)
def test_by_hand(trace: float, expected: list[float]) -> None:
    group = two_turns()
    TurnProgress(trace)([group])
    assert group.rollouts[0].advantages == pytest.approx(expected)


def test_unscored_rollouts_get_no_advantage_and_values_are_needed() -> None:
    group = make_group([1.0, 0.0], failed=[1])
    group.rollouts[0].values = np.zeros(1, dtype=np.float32)
    TurnProgress()([group])
    assert group.rollouts[1].advantages is None
    assert group.rollouts[0].advantages == pytest.approx([1.0])
    group.rollouts[0] = replace(group.rollouts[0], values=None)
    with pytest.raises(ConfigurationError, match="a value for each token of rollout 0-0"):
        TurnProgress()([group])
    with pytest.raises(ConfigurationError, match="0 <= trace <= 1, got 2"):
        TurnProgress(2)
