from __future__ import annotations

import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.controls import Flat
from strop.filter.rewards.from_environment import Earned
from strop.filter.rewards.overlong_penalty import Overlong
from tests.building import make_group


def test_outcome_adds_up_what_the_env_paid() -> None:
    group = make_group([0.0, 0.0, 0.0], turn_rewards=[(0.25, 0.5), (), (-1.0,)])
    assert Earned()(group) == [0.75, 0.0, -1.0]


def test_constant_knows_nothing() -> None:
    assert Flat(0.5)(make_group([1.0, 0.0])) == [0.5, 0.5]


def test_overlong_by_hand() -> None:
    # Limit 20, cushion 8: free up to 12; 16 is half-way; 20 and more cost 1.
    group = make_group([0.0] * 6, lengths=[0, 12, 13, 16, 20, 25])
    assert Overlong(max_tokens=20, cushion=8)(group) == [0.0, 0.0, -0.125, -0.5, -1.0, -1.0]


def test_overlong_with_the_paper_s_numbers() -> None:
    assert Overlong(max_tokens=20480, cushion=4096)(make_group([0.0], lengths=[18432])) == [-0.5]


def test_overlong_looks_at_the_longest_of_several_completions() -> None:
    """Completions of 8, 9 and 8 tokens came near no limit of 20; one of 16 among them did."""
    group = make_group([0.0] * 3, lengths=[8, 9, 16])
    (short,), (middle,), (long,) = (rollout.turns for rollout in group.rollouts)
    group.rollouts[0].turns, group.rollouts[1].turns = (short, middle, short), (short, long, short)
    group.rollouts[2].turns = ()
    assert Overlong(max_tokens=20, cushion=8)(group) == [0.0, -0.5, 0.0]


@pytest.mark.parametrize("cushion", [0, 21])
def test_overlong_refuses_an_impossible_cushion(cushion: int) -> None:
    with pytest.raises(ConfigurationError, match=f"got {cushion}"):
        Overlong(max_tokens=20, cushion=cushion)
