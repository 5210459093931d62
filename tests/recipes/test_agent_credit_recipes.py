"""ragen and demystifying-agentic-rl: the choice among groups and the price of failures, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.conversation.softened import Softened
from strop.filter.rewards.conversation.unreadable import Unreadable
from strop.train.advantages.gae import Gae
from strop.train.advantages.group_mean import GroupMean
from strop.train.advantages.widest_spread import WidestSpread, spread
from strop.types import Group, Message, Outcome, Trajectory, Turn
from tests.building import TASK, advantages_of, make_group, turn


def with_message(text: str) -> Turn:
    made = turn(1)
    object.__setattr__(made, "message", Message("assistant", text))
    return made


# ---- ragen


def test_the_cards_groups() -> None:
    """Spreads 0, .5, .1, .4 and half of them: the second and the fourth; a pair d apart has the std d / sqrt 2."""
    apart = [0.0, 0.5, 0.1, 0.4]
    groups = [make_group([1.0, 1.0 + d * 2**0.5], number=number) for number, d in enumerate(apart)]
    assert [spread(group) for group in groups] == pytest.approx(apart)
    WidestSpread(GroupMean(), share=0.5)(groups)
    found = [advantages_of(group) for group in groups]
    assert found[0] == found[2] == [0.0, 0.0]
    assert found[1] == pytest.approx([-(0.5**0.5) / 2, 0.5**0.5 / 2])
    assert found[3] == pytest.approx([-0.4 / 2**0.5, 0.4 / 2**0.5])
    told = WidestSpread(GroupMean(), share=0.5).learn(groups)
    assert told == pytest.approx({"spread": 0.25, "spread_gained": 0.2})


def test_all_are_kept_with_share_one_and_one_at_least() -> None:
    groups = [make_group([0.0, float(number)], number=number) for number in range(5)]
    WidestSpread(GroupMean(), share=1.0)(groups)
    assert [advantages_of(group)[1] for group in groups] == [0.0, 0.5, 1.0, 1.5, 2.0]
    WidestSpread(GroupMean(), share=0.1)(groups)
    assert [advantages_of(group)[1] for group in groups] == [0.0, 0.0, 0.0, 0.0, 2.0]


def test_failed_attempts_have_no_spread_and_equals_are_left_to_chance() -> None:
    assert spread(make_group([0.0, 9.0], failed=[1])) == 0.0
    assert spread(make_group([0.0, 9.0, 1.0], pruned=[1])) == pytest.approx(0.5**0.5)
    kept = [chosen([make_group([0.0, 1.0], number=10 * draw + n) for n in range(4)]) for draw in range(12)]
    assert {place for places in kept for place in places} == {0, 1, 2, 3}
    assert all(len(places) == 1 for places in kept)
    uneven = [[make_group([0.0, float(n + 1)], number=10 * draw + n) for n in range(4)] for draw in range(12)]
    by_chance = {place for draw in uneven for place in chosen(draw, by_chance=True)}
    assert by_chance == {0, 1, 2, 3} and all(chosen(draw) == [3] for draw in uneven)


def chosen(groups: Sequence[Group], by_chance: bool = False) -> list[int]:
    WidestSpread(GroupMean(), 0.25, by_chance)(groups)
    return [place for place, group in enumerate(groups) if advantages_of(group)[1]]


def test_a_critic_learns_nothing_from_what_is_left_out() -> None:
    groups = [make_group([0.0, 1.0], number=0), make_group([1.0, 1.0], number=1)]
    for attempt in (attempt for group in groups for attempt in group.trajectories):
        attempt.values = np.array([0.25], dtype=np.float32)
    WidestSpread(Gae(trace=1.0, whiten=False), share=0.5)(groups)
    returns = [[float(a.returns[0]) for a in group.scored if a.returns is not None] for group in groups]
    assert returns == [[0.0, 1.0], [0.25, 0.25]]


def test_replies_that_cannot_be_read_have_a_price() -> None:
    turns = tuple(with_message(text) for text in ("<call>get red</call>", "<call>get", "", "7"))
    group = Group(0, TASK, [Trajectory("0", TASK, turns, Outcome.FINISHED)])
    assert Unreadable(0.1)(group) == pytest.approx([-0.2])
    with pytest.raises(ConfigurationError, match="a price of 0 or more, got -1"):
        Unreadable(-1.0)
    for share in (0.0, 1.5):
        with pytest.raises(ConfigurationError, match="a share above 0 and up to 1"):
            WidestSpread(GroupMean(), share)


# ---- demystifying-agentic-rl


def played(replies: int, paid: float) -> Trajectory:
    turns = tuple(turn(1) for _ in range(replies))
    return Trajectory("0", TASK, turns, Outcome.FINISHED, turn_rewards=(*(0.0,) * (replies - 1), paid))


def test_the_cards_prices() -> None:
    """Wrong with 2, 4, 10, 12 messages: -1, -.9, -.6, -.6; right with any: 1; none written: -1 at most."""
    wrong = Group(0, TASK, [played(replies, 0.0) for replies in (1, 2, 5, 6)])
    assert Softened()(wrong) == pytest.approx([-1.0, -0.9, -0.6, -0.6])
    assert Softened(each=0.0)(wrong) == [-1.0] * 4
    assert Softened(each=0.05, least=-0.7)(wrong) == pytest.approx([-1.0, -0.95, -0.8, -0.75])
    assert Softened(shifted=True)(wrong) == pytest.approx([-0.9, -0.6, -0.6, -1.0])
    right = Group(0, TASK, [played(replies, 1.0) for replies in (1, 5)])
    assert Softened()(right) == Softened(shifted=True)(right) == [1.0, 1.0]
    unpaid = Trajectory("0", TASK, (turn(1), turn(1)), Outcome.TRUNCATED)
    assert Softened()(Group(0, TASK, [unpaid])) == [-0.9]
    for each, least in ((-0.1, -0.6), (0.1, 0.1), (0.1, -1.5)):
        with pytest.raises(ConfigurationError, match="each >= 0 and -1 <= least <= 0"):
            Softened(each, least)
