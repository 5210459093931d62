"""XRPO's seeding: which examples are shown, to whom, and that nobody else sees them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.select.xrpo import SeededWhenAllFailed
from strop.types import Group, Message, Origin, Rollout, Task
from tests.building import make_group
from tests.generate.talking import Recording, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions


def asked(text: str, level: int = 0) -> Task:
    return Task((Message("system", "be brief"), Message("user", text)), "4", "test", level)


def solved(text: str, completion: str, version: int = 0, level: int = 0, reward: float = 1.0) -> Group:
    group = make_group([0.0, reward])
    turn = replace(group.rollouts[1].turns[0], message=Message("assistant", completion))
    group.rollouts[1].turns = (turn,)
    return replace(group, task=asked(text, level), version=version)


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.content for message in messages]


def test_the_most_similar_solved_tasks_stand_before_the_last_message_the_nearest_last() -> None:
    strategy = SeededWhenAllFailed(2)
    for text, completion in [("12+34=?", "46"), ("99-98=?", "1"), ("12+35=?", "47"), ("12+344=?", "356")]:
        strategy.observe(solved(text, completion))
    # of the six pieces of 12+345=? each of them has three: 3 / 8 of those of both, but 3 / 9 for the longer 12+344=?
    shown = strategy.shown(asked("12+345=?"), 1)
    assert texts(shown) == ["be brief", "12+34=?", "46", "12+35=?", "47", "12+345=?"]
    assert [message.role for message in shown] == ["system", *["user", "assistant"] * 2, "user"]
    assert texts(strategy.shown(asked("12+34=?"), 1))[-1] == "12+34=?" and "46" not in texts(
        strategy.shown(asked("12+34=?"), 1)
    ), "never the answer to itself"


def test_examples_are_of_the_same_kind_and_of_earlier_versions() -> None:
    strategy = SeededWhenAllFailed(4)
    strategy.observe(solved("1+1=?", "2", version=3))
    strategy.observe(solved("1+2=?", "3", version=0, level=2))
    assert texts(strategy.shown(asked("1+3=?"), 3)) == ["be brief", "1+3=?"]
    assert texts(strategy.shown(asked("1+3=?"), 4)) == ["be brief", "1+1=?", "2", "1+3=?"]


def test_only_own_whole_right_and_short_completions_are_remembered() -> None:
    strategy = SeededWhenAllFailed(2)
    guided = solved("1+1=?", "2")
    guided.rollouts[1].origin = Origin.GUIDED
    for group in (guided, solved("1+2=?", "3" * 401, 0), solved("1+3=?", "4", reward=0.5), make_group([0.0])):
        strategy.observe(group)
    assert strategy.state() == {"known": []}
    strategy.observe(solved("1+4=?", "5"))
    again = SeededWhenAllFailed(2)
    again.restore(json.loads(json.dumps(strategy.state())))
    assert again.shown(asked("1+5=?"), 1) == strategy.shown(asked("1+5=?"), 1) and len(again.shown(asked("1"), 1)) == 4


def played(folder: Path, strategy: SeededWhenAllFailed, earlier: list[float]) -> tuple[list[Rollout], Recording]:
    engine = Recording(["4|"] * 2)
    group = replace(make_group(earlier), task=asked("2+2=?"), version=1)

    async def score(group: Group) -> None:
        return None

    play = GroupPlayer(group, policy_of(save_folder(folder), engine), (Completions(1),), Chat(), 0, score)
    return asyncio.run(strategy(group, [play.another() for _ in range(2)], play)), engine


def test_only_a_lost_wave_is_followed_by_examples(tmp_path: Path) -> None:
    strategy = SeededWhenAllFailed(1)
    strategy.observe(solved("2+1=?", "3"))
    plain, first = played(tmp_path, strategy, [])
    some, second = played(tmp_path, strategy, [0.0, 1.0])
    lost, third = played(tmp_path, strategy, [0.0, 0.0])
    assert {t.origin for t in plain + some} == {Origin.POLICY} and {t.origin for t in lost} == {Origin.GUIDED}
    sizes = [len(engine.prompts[0]) for engine in (first, second, third)]
    assert sizes[0] == sizes[1] < sizes[2]
    unknown, fourth = played(tmp_path, SeededWhenAllFailed(1), [0.0, 0.0])
    assert {t.origin for t in unknown} == {Origin.POLICY} and len(fourth.prompts[0]) == sizes[0], "nothing to show"


def test_it_says_how_many_read_examples() -> None:
    group = make_group([1.0, 0.0, 0.0, 0.0])
    group.rollouts[0].origin = group.rollouts[1].origin = Origin.GUIDED
    assert SeededWhenAllFailed().learn([group]) == {"seeded_share": 0.5, "seeded_right": 0.5}
    with pytest.raises(ConfigurationError, match="got 0"):
        SeededWhenAllFailed(0)
