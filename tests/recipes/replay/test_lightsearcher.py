"""LightSearcher by hand: its reward, how few calls are enough, and the text that good and bad rollouts are told by."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.generate.memory.store import Library
from strop.recipes.replay.lightsearcher.recipe import BAD, GOOD, MEMORY, ExperientialMemory
from strop.recipes.replay.lightsearcher.reward import LEAST, FewestCalls
from strop.types import SUCCESS, Group, Message, Origin, Rollout, Task
from tests.building import make_group, turn
from tests.generate.asking import Counsel, player_of

ENV = KeyValue(2)
EXAMPLE = "sum red blue turn 1: 2 environment: 3 turn 2: 2 environment: 3 turn 3: 7"


def task(prompt: str = "sum red blue") -> Task:
    return Task((Message("user", prompt),), '{"store": {}, "total": 7}', "keyvalue", 2)


def rollout(calls: int, paid: float, completion: str = "7", least: float | None = None, reward: float = 0.0) -> Rollout:
    made = make_group([reward]).rollouts[0]
    answers = [replace(turn(1), told=(Message("tool", "3"),)) for _ in range(calls)]
    turns = [turn(1), *answers]
    turns[-1] = replace(turns[-1], message=Message("assistant", completion))
    facts = {SUCCESS: paid} | ({} if least is None else {LEAST: least})
    return replace(made, task=task(), turns=tuple(turns), turn_rewards=(paid,), facts=facts, rewards={"outcome": paid})


def test_the_reward_by_hand() -> None:
    told = [
        rollout(2, 1.0, least=2),  # as few as any
        rollout(1, 1.0, least=2),  # fewer
        rollout(4, 1.0, least=2),  # two beyond: exp(-1.5)
        rollout(9, 1.0),  # nobody was right before
        rollout(0, 0.5, least=2),  # not right enough for a share of the other half
        rollout(3, 0.8, least=2),  # right enough: exp(-0.75)
        rollout(0, 0.0, least=2),
        rollout(0, 1.0, "<think>never ends", least=2),
        rollout(0, 1.0, " "),
    ]
    expected = [1.0, 1.0, 0.5 + math.exp(-1.5) / 2, 1.0, 0.25, 0.4 + math.exp(-0.75) / 2, 0.0, -1.0, -1.0]
    assert FewestCalls(Earned())(Group(0, task(), told)) == pytest.approx(expected)
    assert FewestCalls(Earned(), price=0.0)(Group(0, task(), told[2:3])) == [1.0] and FewestCalls(Earned()).is_inline


def group(number: int, version: int, rollouts: Sequence[Rollout], prompt: str = "sum red blue") -> Group:
    return Group(number, task(prompt), list(rollouts), version)


def test_the_fewest_calls_are_of_earlier_versions_and_of_right_rollouts() -> None:
    memory = ExperientialMemory(Library())
    assert memory.least(task(), 9) is None
    memory.observe(group(0, 0, [rollout(3, 1.0), rollout(1, 0.5), rollout(4, 1.0)]))
    memory.observe(group(1, 2, [rollout(2, 0.8)]))
    memory.observe(group(2, 3, [rollout(9, 1.0)]))
    memory.observe(group(3, 3, [replace(rollout(0, 1.0), outcome=make_group([0.0], failed=[0]).rollouts[0].outcome)]))
    again = ExperientialMemory(Library())
    again.restore(json.loads(json.dumps(memory.state())))
    for each in (memory, again):
        assert [each.least(task(), version) for version in (0, 1, 2, 3, 4)] == [None, 3, 3, 2, 2]
    assert memory.least(task("sum red gold"), 9) is None


def begun(
    folder: Path, memory: ExperientialMemory, version: int, prompt: str = "sum red blue", number: int | None = None
) -> tuple[Group, str, Rollout]:
    play, engine = player_of(folder, ENV, task(prompt), lambda text, call: "7")
    play.group = group(version if number is None else number, version, [], prompt)
    (made,) = asyncio.run(memory(play.group, [play.another()], play))
    return play.group, engine.prompts[0], made


def read(
    folder: Path,
    memory: ExperientialMemory,
    version: int,
    prompt: str = "sum red blue",
    number: int | None = None,
) -> tuple[str, Rollout]:
    finished, text, made = begun(folder, memory, version, prompt, number)
    memory.observe(finished)
    return text, made


def test_the_text_is_written_every_so_many_versions_from_good_and_bad_rollouts(tmp_path: Path) -> None:
    llm_client = Counsel(["ask less", None, "ask even less"])
    memory = ExperientialMemory(Library(), llm_client, every=2)
    memory.observe(group(0, 0, [rollout(2, 1.0, "7", reward=1.0), rollout(2, 1.0, "8", reward=1.0)]))
    memory.observe(group(1, 0, [rollout(1, 0.0, "9", reward=0.29), rollout(1, 0.0, "6", reward=0.3)], "sum red gold"))
    first, made = read(tmp_path, memory, 1, "sum red pink")
    assert llm_client.asked == [] and f"{EXAMPLE} sum red pink" in first, "an example is there at once"
    assert made.facts == {"memory": 0.0, "examples": 1.0} and made.origin is Origin.GUIDED
    assert len(memory.library.on(GOOD)) == len(memory.library.on(BAD)) == 1
    read(tmp_path, memory, 2)
    (asked,) = llm_client.asked
    assert "]\nsum red gold turn 1: 2 environment: 3 turn 2: 9\n[" in asked and f"]\n{EXAMPLE}\n[" in asked
    read(tmp_path, memory, 2, number=7)
    assert len(llm_client.asked) == 1, "by the first group of a version"
    third, made = read(tmp_path, memory, 3)
    assert "ask less sum red blue" in third and made.facts == {"memory": 1.0, "examples": 0.0, LEAST: 2.0}
    assert "turn 3: 7" not in third, "no example of the task itself"
    assert memory.library.on(BAD) == [], "a bad rollout is contrasted once"
    memory.observe(group(5, 3, [rollout(0, 0.0, reward=0.0)]))
    read(tmp_path, memory, 4)
    memory.library.catch_up()
    assert [lesson.text for lesson in memory.library.on(MEMORY)] == ["ask less"], "nobody answered: it stays"
    memory.observe(group(6, 5, [rollout(0, 0.0, reward=0.0)]))
    read(tmp_path, memory, 6)
    memory.library.catch_up()
    assert [lesson.text for lesson in memory.library.on(MEMORY)] == ["ask even less"]


def test_a_version_without_a_group_puts_the_text_off_and_does_not_skip_it(tmp_path: Path) -> None:
    """Due at version 2, where nothing begins: written at 3, and again at 4."""
    llm_client = Counsel(["ask less", "ask even less"])
    memory = ExperientialMemory(Library(), llm_client, every=2)
    for number, (version, asked) in enumerate(((1, 0), (3, 1), (3, 1), (4, 2), (5, 2))):
        memory.observe(group(9, version - 1, [rollout(2, 1.0, reward=1.0)]))
        memory.observe(group(10, version - 1, [rollout(1, 0.0, "9", reward=0.0)], "sum red gold"))
        read(tmp_path, memory, version, number=number)
        assert len(llm_client.asked) == asked, version


def test_what_was_killed_before_it_had_written_writes_again_and_nobody_else_does(tmp_path: Path) -> None:
    """A checkpoint is made while the group that writes is in flight: what it made is lost, and that it was the one not.

    Two waves of one group write once.
    """
    llm_client = Counsel(["ask less"])
    memory = ExperientialMemory(Library(), llm_client, every=2)
    memory.observe(group(0, 0, [rollout(2, 1.0, reward=1.0)]))
    memory.observe(group(1, 0, [rollout(1, 0.0, "9", reward=0.0)], "sum red gold"))
    begun(tmp_path, memory, 2, number=2)
    begun(tmp_path, memory, 2, number=2)
    assert len(llm_client.asked) == 1
    again = ExperientialMemory(Library(), llm_client, every=2)
    again.restore(json.loads(json.dumps(memory.state())))
    again.library.restore(json.loads(json.dumps(memory.library.state())))
    read(tmp_path, again, 3, number=3)
    assert len(llm_client.asked) == 1
    read(tmp_path, again, 2, number=2)
    again.library.catch_up()
    assert len(llm_client.asked) == 2 and [lesson.text for lesson in again.library.on(MEMORY)] == ["ask less"]


def test_examples_are_the_newest_and_chosen_by_the_key(tmp_path: Path) -> None:
    memory = ExperientialMemory(Library(most=2, same=1.1))
    for number, completion in enumerate("abc"):
        memory.observe(group(number, number, [rollout(0, 1.0, completion, reward=1.0)], "sum red gold"))
    play, _ = player_of(tmp_path, ENV, task(), lambda text, call: "7")
    memory.library.catch_up()
    found = {memory.example(task(), [play.another()]) for _ in range(20)}
    assert found == {"sum red gold b", "sum red gold c"} and memory.example(task(), []) == ""


@pytest.mark.parametrize(
    ("longest", "expected"), [(200, EXAMPLE), (len(EXAMPLE), EXAMPLE), (len(EXAMPLE) - 3, EXAMPLE[:-3]), (0, "")]
)
def test_an_example_loses_its_end_where_it_has_no_room(tmp_path: Path, longest: int, expected: str) -> None:
    memory = ExperientialMemory(Library(), longest=longest)
    memory.observe(group(0, 0, [rollout(2, 1.0, reward=1.0)]))
    text, made = read(tmp_path, memory, 1, "sum red pink")
    assert f"user\n{expected} sum red pink".replace("\n ", "\n") in text
    assert made.facts["examples"] == float(longest > 0)


def test_text_and_example_share_the_room(tmp_path: Path) -> None:
    memory = ExperientialMemory(Library(), Counsel(["ask less"]), every=2, longest=30)
    memory.observe(group(0, 0, [rollout(2, 1.0, reward=1.0)]))
    memory.observe(group(1, 0, [rollout(1, 0.0, "9", reward=0.0)], "sum red gold"))
    read(tmp_path, memory, 2)
    text, made = read(tmp_path, memory, 3, "sum red pink")
    assert f"user\nask less {EXAMPLE[:21]} sum red pink" in text
    assert made.facts["memory"] == made.facts["examples"] == 1.0


def test_bad_numbers_are_refused() -> None:
    for bad in ({"every": 0}, {"worst": 1.1}):
        with pytest.raises(ConfigurationError, match="ExperientialMemory needs"):
            ExperientialMemory(Library(), **bad)  # type: ignore[arg-type]
