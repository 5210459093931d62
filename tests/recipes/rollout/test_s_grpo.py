"""S-GRPO's serial group: cuts, prefixes and rewards of early exits."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.rollout.s_grpo.recipe import SerialExits
from strop.recipes.rollout.s_grpo.reward import EXIT, Decaying
from strop.training.advantages.group_relative import GroupMean
from strop.types import Group, Origin, Rollout
from tests.building import advantages_of, make_group
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions


def played(folder: Path, completions: list[str], count: int, seed: int = 0, is_broken: bool = False) -> list[Rollout]:
    async def score(group: Group) -> None:
        return None

    policy = policy_of(save_folder(folder), Recording(completions))
    env = Completions(1, is_broken=is_broken)
    play = GroupPlayer(Group(0, TASK, []), policy, (env,), Chat(), seed, score)
    strategy = SerialExits("#")
    strategy.meet(policy)
    return asyncio.run(strategy(play.group, [play.another() for _ in range(count)], play))


def test_the_prefix_of_an_exit_is_the_thought_so_far_and_the_inducer(tmp_path: Path) -> None:
    whole, *exits = played(tmp_path, ["xyz</think>7|", "1|", "2|", "3|"], 4)
    assert (
        whole.origin is Origin.POLICY and EXIT not in whole.facts and whole.turns[0].message.content == "xyz</think>7"
    )
    cuts = [int(rollout.facts[EXIT]) for rollout in exits]
    assert cuts == sorted(cuts) and set(cuts) <= {1, 2, 3}
    for rollout, at, answer in zip(exits, cuts, ("1", "2", "3"), strict=True):
        (turn,) = rollout.turns
        assert turn.message.content == "xyz"[:at] + "#" + answer and turn.tokens.tolist() == ids(f"{answer}|")
        assert turn.prefix.tolist() == ids("xyz"[:at] + "#"), "read, not written: trained once, in the whole rollout"
        assert rollout.origin is Origin.BRANCHED and rollout.parent == whole.id


def test_cuts_are_uniform_over_the_thought_length(tmp_path: Path) -> None:
    cuts = Counter(
        rollout.facts[EXIT]
        for seed in range(60)
        for rollout in played(tmp_path, ["abcd</think>7|", *["1|"] * 5], 6, seed)[1:]
    )
    assert set(cuts) == {1.0, 2.0, 3.0, 4.0} and all(45 <= count <= 105 for count in cuts.values())


def test_without_a_thought_there_are_no_exits(tmp_path: Path) -> None:
    assert len(played(tmp_path, ["</think>7|"], 3)) == 1, "it answers at once"
    assert len(played(tmp_path, ["xyz</think>7|"], 3, is_broken=True)) == 1, "the environment failed it"
    assert len(played(tmp_path, ["|"], 3)) == 1, "its end alone is no thought"
    found = played(tmp_path, ["xy|", "1|", "2|"], 3)
    assert len(found) == 3 and {rollout.facts[EXIT] for rollout in found[1:]} <= {1.0, 2.0}, "a thought without an end"


def serial(right: list[int], exits: list[float | None], failed: tuple[int, ...] = ()) -> Group:
    group = make_group([0.0] * len(right), failed=failed, turn_rewards=[(float(each),) for each in right])
    for rollout, at in zip(group.rollouts, exits, strict=True):
        rollout.facts = {} if at is None else {EXIT: at}
    return group


def test_rewards_by_hand() -> None:
    """Right answers at the exits 0, 1, 1, 0 and at the end: 0, 1, 1/2, 0, 1/4, whose mean is 0.35."""
    group = serial([1, 0, 1, 1, 0], [None, 3.0, 7.0, 5.0, 9.0])  # the whole thought first; exits in any order
    rewards = Decaying(Earned())(group)
    assert rewards == [0.25, 0.0, 0.5, 1.0, 0.0]
    for rollout, reward in zip(group.rollouts, rewards, strict=True):
        rollout.reward = reward
    GroupMean()([group])
    assert advantages_of(group) == pytest.approx([-0.1, -0.35, 0.15, 0.65, -0.35])


def test_wrong_failed_and_lone_answers() -> None:
    assert Decaying(Earned())(serial([0, 0, 0], [None, 1.0, 2.0])) == [0.0] * 3
    assert Decaying(Earned())(serial([1, 0, 0], [None, 1.0, 2.0])) == [1.0, 0.0, 0.0], "one right one, wherever it is"
    assert Decaying(Earned())(serial([1, 1, 1], [None, 1.0, 2.0], failed=(1,))) == [0.5, 0.0, 1.0]
    assert Decaying(Earned()).is_inline and Decaying(Earned()).is_relative


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="got an empty one"):
        SerialExits("")
    with pytest.raises(ConfigurationError, match="meet"):
        SerialExits()._thought_length(make_group([1.0]).rollouts[0])
