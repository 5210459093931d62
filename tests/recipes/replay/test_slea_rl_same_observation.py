"""SLEA-RL's advantage by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.replay.slea_rl.advantage import SameObservation
from strop.recipes.replay.slea_rl.observed import SEPARATOR
from strop.recipes.replay.slea_rl.reward import Refused
from strop.types import Group, Message, Rollout
from tests.building import make_group, turn


def rollouts(*told: tuple[list[str], list[float]]) -> Group:
    """What was read before each turn after the first, and what each turn was paid; turn k writes k + 1 tokens."""
    group = make_group([sum(paid) for _, paid in told], turn_rewards=[tuple(paid) for _, paid in told], failed=[])
    for rollout, (texts, _) in zip(group.rollouts, told, strict=True):
        heard = [(), *((Message("tool", text),) for text in texts)]
        rollout.turns = tuple(replace(turn(k + 1), told=messages) for k, messages in enumerate(heard))
    return group


def advantages(rollout: Rollout) -> list[float]:
    assert rollout.advantages is not None
    return [float(each) for each in rollout.advantages]


def test_credit_by_hand() -> None:
    """Rewards 1, 0 and 2 with mean 1. Returns with discount 1/2: .5, 1 | 0, 0 | 1, 2. First turns: mean .5.

    The first two read `a` before their second turn: mean .5; the third read `b` alone.
    """
    group = rollouts((["a"], [0.0, 1.0]), (["a"], [0.0, 0.0]), (["b"], [0.0, 2.0]))
    SameObservation(weight=2.0, discount=0.5)([group])
    assert advantages(group.rollouts[0]) == pytest.approx([0 + 2 * 0.0, *[0 + 2 * 0.5] * 2])
    assert advantages(group.rollouts[1]) == pytest.approx([-1 + 2 * -0.5, *[-1 + 2 * -0.5] * 2])
    assert advantages(group.rollouts[2]) == pytest.approx([1 + 2 * 0.5, *[1 + 0] * 2])
    SameObservation(weight=0.0)([group])
    assert advantages(group.rollouts[2]) == pytest.approx([1.0] * 3), "the rollout alone"


def test_the_same_observation_in_another_turn_is_compared_and_what_was_given_up_is_not() -> None:
    group = rollouts((["a", "a"], [0.0, 0.0, 1.0]), (["b"], [0.0, 0.0]), (["a"], [0.0, 5.0]))
    group.rollouts[2] = replace(group.rollouts[2], outcome=make_group([0.0], pruned=[0]).rollouts[0].outcome)
    SameObservation(discount=0.5)([group])
    # returns .25, .5, 1: both that read `a` are compared, mean .75; the mean reward of two is .5
    assert advantages(group.rollouts[0]) == pytest.approx([0.5 + 0.125, *[0.5 - 0.25] * 2, *[0.5 + 0.25] * 3])
    assert group.rollouts[2].advantages is None
    SameObservation()([make_group([0.0], failed=[0])])
    with pytest.raises(ConfigurationError, match="discount from 0 to 1, got"):
        SameObservation(discount=1.5)


def test_what_is_remembered_beside_an_observation_makes_it_no_other_one() -> None:
    """Both read `a`; the library had grown meanwhile. Returns 2 and 0 of the second turns, mean 1."""
    group = rollouts(([f"a{SEPARATOR}do x"], [0.0, 2.0]), ([f"a{SEPARATOR}do y"], [0.0, 0.0]))
    SameObservation(discount=0.0)([group])
    assert advantages(group.rollouts[0]) == pytest.approx([1 + 0, *[1 + 1] * 2])
    assert advantages(group.rollouts[1]) == pytest.approx([-1 + 0, *[-1 - 1] * 2])


def test_refusals_have_their_price() -> None:
    group = rollouts((["error: no", "fine", "error"], [0.0] * 4), (["no error"], [0.0] * 2))
    assert np.allclose(Refused()(group), [-0.2, 0.0]) and np.allclose(Refused(price=1.0, refusal="f")(group), [-1.0, 0])
