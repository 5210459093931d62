"""SLEA-RL by hand: what stands beside an observation, what is taken from rollouts, and what a version may add."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.memory.store import Lesson, Library, add
from strop.generate.strategies.independent import Independent
from strop.recipes.replay.slea_rl.agent import ExperienceAgent
from strop.recipes.replay.slea_rl.experiences import strategies_of, warnings_of
from strop.recipes.replay.slea_rl.observed import SEPARATOR, observed
from strop.recipes.replay.slea_rl.strategy import ExperienceCollector
from strop.types import SUCCESS, Group, Message, Rollout, Task
from tests.building import make_group, turn
from tests.generate.asking import player_of

ENV = KeyValue(2)
SECRET = json.dumps({"store": {"red": 3, "blue": 4}, "total": 7})
TASK = Task((Message("user", "sum red blue"),), SECRET, "keyvalue", 2)


def libraries(*changes: tuple[str, str, str, float]) -> tuple[Library, Library]:
    """Lessons (category, text, about, score); those of mistakes and patterns in the second."""
    good, bad = Library(same=1.1), Library(same=1.1)
    for category, text, about, score in changes:
        (bad if category in ("mistake", "pattern") else good).carry_out(add(text, about, category, score))
    return good, bad


def test_beside_every_observation_stand_the_best_of_its_cluster(tmp_path: Path) -> None:
    kept = libraries(
        ("example", "low", "sum red blue", 0.1),
        ("example", "high", "sum red blue", 0.9),
        ("method", "middle", "sum red blue", 0.5),
        ("method", "elsewhere", "another thing", 0.8),
        ("mistake", "not so", "another thing", 0.2),
        ("mistake", "nor so", "", 0.3),
    )
    completions = ["<call>get red</call>", "<call>get blue</call>", "7"]
    agent = ExperienceAgent(Chat(), *kept)
    play, engine = player_of(tmp_path, ENV, TASK, lambda prompt, call: completions[call], agent)
    rollout = asyncio.run(play(play.another()))
    assert sum(rollout.turn_rewards) == 1.0 and len(rollout.turns) == 3
    assert "sum red blue experience: high middle nor so" in engine.prompts[0]
    # no cluster for what the store says: the best of all
    assert engine.prompts[1].endswith("tool\n3 experience: high elsewhere nor so<|end|>\n<|start|>assistant\n")
    assert [observed(each.told) for each in rollout.turns] == ["", "3", "4"], "experiences are no observation"
    assert rollout.turns[0].fresh, "the first prompt is not the task's alone"


def test_the_best_of_a_large_cluster_is_found_wherever_it_stands(tmp_path: Path) -> None:
    kept = libraries(*(("example", f"do {place}", "sum red blue", place / 100) for place in range(90)))
    play, engine = player_of(tmp_path, ENV, TASK, lambda prompt, call: "7", ExperienceAgent(Chat(), *kept))
    asyncio.run(play(play.another()))
    assert "sum red blue experience: do 89 do 88<" in engine.prompts[0]


def test_without_experiences_it_is_the_inner_agent(tmp_path: Path) -> None:
    play, engine = player_of(tmp_path, ENV, TASK, lambda prompt, call: "7", ExperienceAgent(Chat(), *libraries()))
    rollout = asyncio.run(play(play.another()))
    assert SEPARATOR not in engine.prompts[0] and not rollout.turns[0].fresh
    long = libraries(("example", "x" * 9, "sum red blue", 1.0))
    play, engine = player_of(tmp_path, ENV, TASK, lambda prompt, call: "7", ExperienceAgent(Chat(), *long, longest=8))
    asyncio.run(play(play.another()))
    assert SEPARATOR not in engine.prompts[0], "nothing fits"


def said(completions: Sequence[str], told: Sequence[str], reward: float) -> Rollout:
    """A rollout that read these answers between its completions."""
    rollout = make_group([reward]).rollouts[0]
    turns = [replace(turn(1), message=Message("assistant", completion)) for completion in completions]
    heard = [(), *((Message("tool", text + SEPARATOR + "x"),) for text in told)]
    turns = [replace(each, told=messages) for each, messages in zip(turns, heard, strict=True)]
    return replace(rollout, task=TASK, turns=tuple(turns), facts={SUCCESS: reward})


def test_what_is_taken_from_rollouts() -> None:
    right = said(["<think>first</think>get red", "get blue", "7"], ["3", "4"], 1.0)
    assert strategies_of(right) == [
        Lesson("first get red, then get blue", "sum red blue", "method", 1.0),
        Lesson("do get red", "sum red blue", "example", 0.8),
        Lesson("do get blue", "3", "example", 0.8),
    ]
    wrong = said(["get red"] * 3 + ["get pink", "8"], ["3", "3", "3", "0"], 0.0)
    assert warnings_of(wrong) == [
        Lesson("avoid get red, then get red, then get pink", "3", "mistake", 0.0),
        Lesson("avoid get red again and again", "sum red blue", "pattern", 0.5),
    ]
    assert strategies_of(said(["7"], [], 1.0)) == warnings_of(said(["8"], [], 0.0)) == [], "an answer is no action"
    telling = said(["get red", "set pink 7", "7"], ["3", "ok"], 1.0)
    assert [lesson.text for lesson in strategies_of(telling)] == ["do get red"], "nothing that says the answer"
    assert strategies_of(said(["", "get red", "7"], ["3", "4"], 1.0))[1].about == "3", "a turn without a word is none"


def group(number: int, version: int, rollouts: list[Rollout]) -> Group:
    return Group(number, TASK, rollouts, version)


def called(strategy: ExperienceCollector, version: int, folder: Path) -> None:
    play, _ = player_of(folder, ENV, TASK, lambda prompt, call: "7")
    asyncio.run(strategy(group(99, version, []), [], play))


def test_a_version_adds_so_many_from_its_best_and_the_library_opens_late(tmp_path: Path) -> None:
    good, bad = Library(same=0.999), Library(same=0.999)
    strategy = ExperienceCollector(Independent(), good, bad, golden=3, warnings=1, top=2, start=2)
    rights = [said([f"get {key}", "9"], ["3"], score) for key, score in (("a", 0.6), ("b", 1.0), ("c", 0.9))]
    strategy.observe(group(0, 0, [*rights, said(["get d", "9"], ["3"], 0.5), said(["get e", "9"], ["3"], 0.1)]))
    called(strategy, 1, tmp_path)
    assert len(good) == len(bad) == 0, "off before version 2"
    again = ExperienceCollector(Independent(), good, bad, golden=3, warnings=1, top=2, start=2)
    again.restore(json.loads(json.dumps(strategy.state())))
    called(again, 2, tmp_path)
    assert [each.text for category in ("method", "example") for each in good.on(category)] == [
        "first get b",
        "first get c",
        "do get b",
    ]
    assert [each.text for each in bad.on("mistake")] == ["avoid get e"], "the worst failure first"
    assert again.state() == {"good": [], "bad": []} and again.learn([]) == {"strategies": 3.0, "warnings": 1.0}
    again.observe(group(1, 2, [rights[1]]))
    called(again, 2, tmp_path)
    assert good.on("method")[0].support == 1, "its own version does not read it"
    called(again, 3, tmp_path)
    assert good.on("method")[0].support == 2 and len(good) == 3, "what is merged adds nothing"


def test_failed_and_pruned_rollouts_teach_nothing() -> None:
    strategy = ExperienceCollector(Independent(), Library(), Library())
    strategy.observe(make_group([1.0, 0.0], failed=[0], pruned=[1]))
    assert strategy.state() == {"good": [], "bad": []}


def test_bad_numbers_are_refused() -> None:
    for bad in ({"golden": -1}, {"warnings": -1}, {"top": 0}):
        with pytest.raises(ConfigurationError, match="ExperienceCollector needs"):
            ExperienceCollector(Independent(), Library(), Library(), **bad)
    for other in ({"golden": -1}, {"warnings": -1}, {"near": 0.0}, {"near": 1.1}):
        with pytest.raises(ConfigurationError, match="ExperienceAgent needs"):
            ExperienceAgent(Chat(), Library(), Library(), **other)  # type: ignore[arg-type]
