"""ragen, demystifying-agentic-rl and digirl: choices among groups and rollouts, and prices of failures, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.agent.demystifying_agentic_rl import Softened
from strop.recipes.agent.ragen import Unreadable, WidestSpread, spread
from strop.training.advantages.gae import Gae
from strop.training.advantages.group_relative import GroupMean
from strop.training.advantages.steps.hard_filtered import HardFiltered, step_advantages
from strop.types import Group, Message, Outcome, Rollout, Turn
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


def test_failed_rollouts_have_no_spread_and_equals_are_left_to_probability() -> None:
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
    for rollout in (rollout for group in groups for rollout in group.rollouts):
        rollout.values = np.array([0.25], dtype=np.float32)
    WidestSpread(Gae(trace=1.0, whiten=False), share=0.5)(groups)
    returns = [[float(a.returns[0]) for a in group.scored if a.returns is not None] for group in groups]
    assert returns == [[0.0, 1.0], [0.25, 0.25]]


def test_completions_that_cannot_be_read_have_a_price() -> None:
    turns = tuple(with_message(text) for text in ("<call>get red</call>", "<call>get", "", "7", "8"))
    group = Group(0, TASK, [Rollout("0", TASK, turns, Outcome.FINISHED)])
    assert Unreadable(0.1)(group) == pytest.approx([-0.2])
    with pytest.raises(ConfigurationError, match="a price of 0 or more, got -1"):
        Unreadable(-1.0)
    for share in (0.0, 1.5):
        with pytest.raises(ConfigurationError, match="a share above 0 and up to 1"):
            WidestSpread(GroupMean(), share)


# ---- demystifying-agentic-rl


def played(completions: int, paid: float) -> Rollout:
    turns = tuple(turn(1) for _ in range(completions))
    return Rollout("0", TASK, turns, Outcome.FINISHED, turn_rewards=(*(0.0,) * (completions - 1), paid))


def test_the_cards_prices() -> None:
    """Wrong with 2, 4, 10, 12 messages: -1, -.9, -.6, -.6; right with any: 1; none written: -1 at most."""
    wrong = Group(0, TASK, [played(completions, 0.0) for completions in (1, 2, 5, 6)])
    assert Softened()(wrong) == pytest.approx([-1.0, -0.9, -0.6, -0.6])
    assert Softened(each=0.0)(wrong) == [-1.0] * 4
    assert Softened(each=0.05, least=-0.7)(wrong) == pytest.approx([-1.0, -0.95, -0.8, -0.75])
    assert Softened(shifted=True)(wrong) == pytest.approx([-0.9, -0.6, -0.6, -1.0])
    right = Group(0, TASK, [played(completions, 1.0) for completions in (1, 5)])
    assert Softened()(right) == Softened(shifted=True)(right) == [1.0, 1.0]
    unpaid = Rollout("0", TASK, (turn(1), turn(1)), Outcome.TRUNCATED)
    assert Softened()(Group(0, TASK, [unpaid])) == [-0.9]
    for each, least in ((-0.1, -0.6), (0.1, 0.1), (0.1, -1.5)):
        with pytest.raises(ConfigurationError, match="each >= 0 and -1 <= least <= 0"):
            Softened(each, least)


# ---- digirl


def valued(reward: float, values: Sequence[float], paid: tuple[float, ...] = (), tokens: int = 1) -> Rollout:
    """A turn per value, each of so many tokens; the value stands before its first token."""
    turns = tuple(turn(tokens) for _ in values)
    made = Rollout("0", TASK, turns, Outcome.FINISHED, reward=reward, turn_rewards=paid or (0.0,) * len(values))
    spread_out = [each for value in values for each in (value, *(9.0,) * (tokens - 1))]
    made.values = np.array(spread_out, dtype=np.float32)
    return made


def test_the_cards_steps() -> None:
    """A gain of .04 without success is not worth its step, one of .06 is; success reaches back by halves."""
    assert step_advantages(valued(0.0, (0.1, 0.14, 0.2), tokens=2), 0.05, 0.5) == pytest.approx([-0.01, 0.01, -0.25])
    # last: 0 - .7 - .05 + 1 + 1; before: .7 - .4 - .05 + 0 + .5
    assert step_advantages(valued(1.0, (0.4, 0.7), (0.0, 1.0)), 0.05, 0.5) == pytest.approx([0.75, 1.25])


def test_a_success_on_a_hard_task_ranks_above_one_on_an_easy_task() -> None:
    easy, hard, lost = valued(1.0, (0.9,)), valued(1.0, (0.2,)), valued(0.0, (0.3,))
    failed = Rollout("3", TASK, (), Outcome.FAILED)
    group = Group(0, TASK, [easy, hard, failed, lost])
    HardFiltered(share=0.34)([group])
    assert advantages_of(Group(0, TASK, [easy, hard, lost])) == [0.0, 1.0, 0.0] and failed.advantages is None
    told = HardFiltered().learn([group])
    assert told == pytest.approx({"imitated_share": 1 / 3, "imitated_tokens": 1 / 3})
    HardFiltered(share=0.67)([group])
    assert advantages_of(Group(0, TASK, [easy, hard, lost])) == [1.0, 1.0, 0.0]
    HardFiltered(share=1.0)([group])
    assert advantages_of(Group(0, TASK, [easy, hard, lost])) == [1.0, 1.0, 0.0], "never the worst of a batch"


def test_where_all_fail_alike_nothing_is_imitated() -> None:
    alike = [valued(0.0, (0.1, 0.2)) for _ in range(10)]
    for by in ("instruction", "reward"):
        HardFiltered(0.5, by)([Group(0, TASK, alike)])  # type: ignore[arg-type]
        assert not any(each.advantages.any() for each in alike if each.advantages is not None)
    HardFiltered(0.5, "random")([Group(0, TASK, alike)])
    imitated = [each.advantages.tolist() for each in alike if each.advantages is not None]
    assert sorted(imitated) == [[0.0, 0.0]] * 5 + [[1.0, 0.0]] * 5, "steps with a gain of .1, of any five"


def test_by_reward_and_bad_input() -> None:
    rollouts = [valued(1.0, (0.9,)), valued(1.0, (0.2,)), valued(0.0, (0.0,)), valued(0.0, (0.5,))]
    found = set()
    for number in range(8):
        HardFiltered(0.25, "reward")([Group(number, TASK, rollouts)])
        found.add(tuple(advantages_of(Group(0, TASK, rollouts))))
    assert found == {(1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)}, "one of the successes, whatever was expected"
    rollouts[0].values = None
    with pytest.raises(ConfigurationError, match="a value for each token"):
        HardFiltered(0.5)([Group(0, TASK, rollouts)])
    for share, discount in ((0.0, 0.5), (1.1, 0.5), (0.5, 2.0)):
        with pytest.raises(ConfigurationError, match="0 < share <= 1 and 0 <= discount <= 1"):
            HardFiltered(share, discount=discount)
