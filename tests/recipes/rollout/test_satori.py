"""Satori: which prefixes are known, how they are cut, the rewards of restarts, and a run with them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strop.control.samplers.few import Few
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrate_reflection import DemonstrateReflection
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.rollout import play as played_once
from strop.recipes.rollout.satori.recipe import Restarts
from strop.recipes.rollout.satori.reward import RESTART, RestartBonus
from strop.types import Group, Message, Origin, Rollout, Start
from tests.building import make_group
from tests.generate.strategies.flowing import Counting, Hearing, flown
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions
from tests.tiny_models import save_pocket_like


def made(completions: dict[str, float], number: int = 0, version: int = 0) -> Group:
    """Rollouts with these completions and rewards."""
    group = make_group(list(completions.values()), number=number)
    for rollout, completion in zip(group.rollouts, completions, strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", completion)),)
    return replace(group, version=version)


def played(folder: Path, strategy: Restarts, count: int, version: int) -> tuple[list[Rollout], Recording]:
    async def score(group: Group) -> None:
        return None

    engine = Recording(["9|"] * count)
    group = replace(make_group([]), version=version)
    play = GroupPlayer(group, policy_of(save_folder(folder), engine), (Completions(1),), Chat(), 0, score)
    return asyncio.run(strategy(group, [play.another() for _ in range(count)], play)), engine


def test_the_last_steps_are_replaced_by_the_marker() -> None:
    strategy = Restarts("#", 3)
    cuts = [strategy.prefill("a=1 b=2 c=3", steps) for steps in (1, 2, 3, 4)]
    assert cuts == ["a=1 b=2 #", "a=1 #", "#", "#"]


def test_the_newest_of_earlier_versions_is_known() -> None:
    strategy = Restarts("#")
    task = made({}).task.id
    strategy.observe(made({"r1": 1.0, "r2": 1.0, "w1": 0.0}, number=4, version=1))
    strategy.observe(made({"w3": 0.0}, number=9, version=3))
    strategy.observe(made({"w2": 0.0, "half": 0.5}, number=6, version=2))  # late
    assert strategy.known(task, 1) == {} and strategy.known("another", 9) == {}
    assert strategy.known(task, 2) == {True: ("4-0", "r1"), False: ("4-2", "w1")}
    assert strategy.known(task, 3) == {True: ("4-0", "r1"), False: ("6-0", "w2")}
    assert strategy.known(task, 4) == {True: ("4-0", "r1"), False: ("9-0", "w3")}
    again = Restarts("#")
    again.restore(json.loads(json.dumps(strategy.state())))
    assert again.known(task, 3) == strategy.known(task, 3) and again.state() == strategy.state()


def test_a_wrong_rollout_stays_known_however_often_the_task_was_solved_since() -> None:
    strategy = Restarts("#")
    task = made({}).task.id
    strategy.observe(made({"w": 0.0}, number=0, version=0))
    for version in range(1, 20):
        strategy.observe(made({f"r{version}": 1.0}, number=version, version=version))
    assert strategy.known(task, 20) == {True: ("19-0", "r19"), False: ("0-0", "w")}
    ((_, rows),) = strategy.state()["known"]
    assert [row[4] for row in rows] == ["w", "r16", "r17", "r18", "r19"], "four of each kind at most"


def test_only_own_whole_short_completions_are_known() -> None:
    strategy = Restarts("#")
    helped = made({"r": 1.0})
    helped.rollouts[0].origin = Origin.BRANCHED
    long, two = made({"x" * 2001: 1.0}), made({"r": 1.0})
    two.rollouts[0].turns *= 2
    failed = replace(make_group([1.0], failed=[0]))
    for group in (helped, long, two, failed, make_group([])):
        strategy.observe(group)
    assert strategy.state() == {"known": []}


def test_prompt_right_and_wrong_prefixes_are_equally_likely(tmp_path: Path) -> None:
    strategy = Restarts("#", 2)
    strategy.observe(made({"1 2 3": 1.0, "4 5 6": 0.0}))
    found, engine = played(tmp_path, strategy, 300, version=1)
    kinds = Counter(each.facts[RESTART] for each in found)
    assert set(kinds) == {-1.0, 0.0, 1.0} and all(75 <= count <= 125 for count in kinds.values())
    texts = Counter(each.completion for each in found)
    assert set(texts) == {"9", "1 2 #9", "1 #9", "4 5 #9", "4 #9"} and all(count >= 30 for count in texts.values())
    for each, prompt in zip(found, engine.prompts, strict=True):
        (turn,) = each.turns
        is_own = each.facts[RESTART] == 0
        assert each.origin is (Origin.POLICY if is_own else Origin.BRANCHED)
        assert each.parent == {0.0: "", 1.0: "0-0", -1.0: "0-1"}[each.facts[RESTART]]
        assert turn.tokens.tolist() == ids("9|") and turn.num_prefix == len(each.completion) - 1
        assert prompt.tolist()[len(prompt) - turn.num_prefix :] == ids(each.completion[:-1]), "it read them"
    unknown, _ = played(tmp_path, strategy, 4, version=0)
    assert {each.facts[RESTART] for each in unknown} == {0.0}


def test_rewards_by_hand() -> None:
    """Right: 0, or 0.5 from a wrong prefix. Wrong: -1, or -1.5 from a right one."""
    group = make_group([0.0] * 6, turn_rewards=[(1.0,), (1.0,), (1.0,), (0.0,), (0.0,), (0.5,)])
    for rollout, began in zip(group.rollouts, (0.0, 1.0, -1.0, 0.0, 1.0, -1.0), strict=True):
        rollout.facts = {RESTART: began} if began else {}
    assert RestartBonus(Earned(), 0.5)(group) == [0.0, 0.0, 0.5, -1.0, -1.5, -1.0]


def test_the_marker_is_shown_before_a_step(tmp_path: Path) -> None:
    agent, env = DemonstrateReflection(Demonstrate(), "#"), Arithmetic(2)
    texts = Counter(agent.tagged("a b c", key) for key in range(60))
    assert set(texts) == {"#a b c", "a #b c", "a b #c"} and min(texts.values()) > 8
    policy = policy_of(save_folder(tmp_path), Recording([]))
    rollout = asyncio.run(played_once(agent, env, policy.dialogue(env.task(3), Start("0", 5))))
    assert rollout.completion == agent.tagged(env.solution(env.task(3)), 5) and rollout.origin is Origin.TEACHER
    assert rollout.completion.count("#") == 1 and rollout.turn_rewards == (1.0,)
    with pytest.raises(ConfigurationError, match=r"Completions has no demonstrate\(\)"):
        asyncio.run(played_once(agent, Completions(1), policy.dialogue(TASK, Start("0", 5))))


def test_bad_input_is_refused() -> None:
    for fields in ({"reflect": ""}, {"separator": ""}, {"dropped": 0}):
        with pytest.raises(ConfigurationError, match="Restarts needs a text for reflect and separator"):
            Restarts(**fields)  # type: ignore[arg-type]


def test_in_a_run_prefixes_are_not_trained(tmp_path: Path) -> None:
    """Two tasks that come back in the second step."""
    engine, envs = Counting(lambda prompt, key: f"1 {key % 9}"), (Hearing(Arithmetic(2)),)
    parts = {"envs": envs, "sampler": Few(envs, 2)}
    found = flown(save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db", Restarts("#", 1), engine, **parts)
    restarts = [each for each in found.rollouts.values() if each.origin is Origin.BRANCHED]
    assert restarts and all(int(each.id.split("/")[0]) >= 4 for each in restarts), "nothing is known at first"
    for each in restarts:
        assert found.rollouts[each.parent].completion.split(" ")[0] == "1" and each.completion.startswith("1 #1 ")
        assert np.array_equal(each.turns[0].versions, [1] * each.num_tokens)
    assert sorted(found.heard) == sorted(each.completion for each in found.rollouts.values())
