"""Parallel-R1: what paths, summary and environment see; blocks that count; rewards by hand; every token sampled
once.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.rollout import play
from strop.generate.strategies.independent import Independent
from strop.recipes.rollout.parallel_r1.recipe import STOPS, DemonstrateParallel, ParallelPaths
from strop.recipes.rollout.parallel_r1.reward import ParallelBonus, in_parallel, num_valid_blocks, spoken
from strop.types import Message, Origin, Rollout, Sampling, Start
from tests.building import make_group
from tests.generate.strategies.flowing import Counting, Hearing, flown
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions
from tests.tiny_models import save_pocket_like


class Listening(Completions):
    """One completion, which is kept."""

    completions_seen: list[str] = []  # noqa: RUF012 (of all rollouts of one test)

    async def step(self, completion: Message):  # type: ignore[no-untyped-def]
        self.completions_seen.append(completion.content)
        return await super().step(completion)


def attempted(
    folder: Path, completions: list[str], agent: ParallelPaths, context: int = 1024
) -> tuple[Rollout, Recording]:
    engine = Recording(completions)
    policy = policy_of(save_folder(folder), engine, stop=STOPS, context=context)
    Listening.completions_seen.clear()
    return asyncio.run(play(agent, Listening(1), policy.dialogue(TASK, Start("0/0", 7)))), engine


def test_paths_begin_alike_and_the_summary_reads_them_all(tmp_path: Path) -> None:
    rollout, engine = attempted(tmp_path, ["a{", "1]", "2|", "s)b|"], ParallelPaths(2))
    first, second, main, summary = rollout.turns
    opening = engine.prompts[0].tolist()
    assert [prompt.tolist() for prompt in engine.prompts[1:3]] == [[*opening, *ids("a{[")]] * 2, "no path sees another"
    assert engine.prompts[3].tolist() == [*opening, *ids("a{[1][2]}(")], "a path that was not closed is"
    assert [turn.fresh for turn in rollout.turns] == [True, True, True, False]
    assert [turn.tokens.tolist() for turn in rollout.turns] == [ids("1]"), ids("2|"), ids("a{"), ids("s)b|")]
    assert [turn.num_prefix for turn in rollout.turns] == [1, 1, 0, 8], "tags and paths are given"
    assert first.message.content == "[1]" and second.message.content == "[2" and main.message.content == "a{"
    assert summary.message.content == rollout.completion == "[1][2]}(s)b"
    assert Listening.completions_seen == ["a{[1][2]}(s)b"] and rollout.turn_rewards == (0.0, 0.0, 0.0, 0.0)
    assert len(set(engine.keys)) == 3 and engine.keys[0] == engine.keys[3] == 7, "paths have probabilities of their own"
    assert rollout.num_sampled == 2 + 2 + 2 + 4 and spoken(rollout) == "a{[1][2]}(s)b"


def test_several_blocks_and_no_more_than_allowed(tmp_path: Path) -> None:
    rollout, engine = attempted(tmp_path, ["{", "1]", "2]", "s){", "3]", "4]", "5]"], ParallelPaths(2, 1))
    assert (
        len(engine.prompts) == 4
        and Listening.completions_seen == ["{[1][2]}(s){"]
        and num_valid_blocks(spoken(rollout)) == 0
    )
    again, engine = attempted(tmp_path, ["{", "1]", "2]", "s){", "3]", "4]", "t)c|"], ParallelPaths(2, 2))
    assert Listening.completions_seen == ["{[1][2]}(s){[3][4]}(t)c"] and num_valid_blocks(spoken(again)) == 2
    assert again.completion == "[3][4]}(t)c" and len(again.turns) == 7


def test_without_a_block_it_is_one_completion(tmp_path: Path) -> None:
    rollout, engine = attempted(tmp_path, ["abc|"], ParallelPaths(2))
    assert len(engine.prompts) == 1 and rollout.completion == "abc" and not rollout.turns[0].fresh
    assert attempted(tmp_path, ["a]"], ParallelPaths(2))[0].completion == "a]", "a path that was not opened ends it"


def test_a_full_context_ends_it(tmp_path: Path) -> None:
    size = len(attempted(tmp_path, ["abc|"], ParallelPaths(2))[1].prompts[0])
    rollout, engine = attempted(tmp_path, ["a{", "1]"], ParallelPaths(2), context=size + 3)
    assert len(engine.prompts) == 1 and Listening.completions_seen == ["a{"], (
        "no room for the tag and a token behind it"
    )
    rollout, engine = attempted(tmp_path, ["a{", "12", "34"], ParallelPaths(2), context=size + 5)
    assert len(engine.prompts) == 3 and Listening.completions_seen == ["a{"] and rollout.num_sampled == 6, (
        "none for the summary"
    )


def test_blocks_that_count() -> None:
    for text, count in [("a{[1][2]}(s)b", 1), ("{[1]}(s)", 0), ("{[1][2]}s", 0), ("{[1][2](s)", 0), ("abc", 0)]:
        assert num_valid_blocks(text) == count
    assert num_valid_blocks("{[1][2]}(s){[1]}(t)") == 0, "one that is not valid spoils all"
    assert in_parallel("<think>1+2=3 3+4=7</think>7", 2) == "<think>{[1+2=3 3+4=7][1+2=3 3+4=7]}(7)</think>7"
    assert in_parallel("7", 2) == "7"


def test_rewards_by_hand() -> None:
    """Right in parallel, right in a row, wrong in parallel; versions 0 to 7 of ten pay alike, 8 and 9 a fifth more."""
    group = make_group([0.0] * 3, turn_rewards=[(1.0,), (1.0,), (0.0,)])
    for rollout, text in zip(group.rollouts, ("{[1][2]}(s)7", "7", "{[1][2]}(s)8"), strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", text)),)
    rewards = {at: ParallelBonus(Earned())(replace(group, version=at)) for at in (0, 7, 8, 9, 10, 18)}
    assert {at for at, each in rewards.items() if each == [1.2, 1.0, -1.0]} == {8, 9, 18}
    assert {at for at, each in rewards.items() if each == [1.0, 1.0, -1.0]} == {0, 7, 10}
    scaffold = ParallelBonus(Earned(), 0.5, plain=0, last=9)
    assert [scaffold(replace(group, version=at))[0] for at in (0, 9, 10)] == [1.5, 1.5, 1.0]


def test_bad_input_is_refused(tmp_path: Path) -> None:
    for paths, blocks in ((1, 4), (2, 0)):
        with pytest.raises(ConfigurationError, match=f"got {paths}, {blocks}"):
            ParallelPaths(paths, blocks)
    with pytest.raises(ConfigurationError, match="got 10 and 11"):
        ParallelBonus(Earned(), plain=11)
    rollout, _ = attempted(tmp_path, ["abc|"], ParallelPaths())
    policy = policy_of(save_folder(tmp_path), Recording([]))
    with pytest.raises(ConfigurationError, match="cannot resume a rollout"):
        asyncio.run(play(ParallelPaths(), Completions(1), policy.dialogue(TASK, Start("1", 1, rollout.turns))))
    with pytest.raises(ConfigurationError, match=r"Completions has no demonstrate\(\)"):
        asyncio.run(play(DemonstrateParallel(Demonstrate()), Completions(1), policy.dialogue(TASK, Start("1", 1))))


def test_demonstrations_have_the_format_of_completions(tmp_path: Path) -> None:
    env, policy = Arithmetic(2), policy_of(save_folder(tmp_path), Recording([]))
    shown = asyncio.run(play(DemonstrateParallel(Demonstrate(), 3), env, policy.dialogue(env.task(1), Start("1", 1))))
    assert shown.origin is Origin.TEACHER and shown.turn_rewards == (1.0,) and num_valid_blocks(shown.completion) == 1
    assert shown.completion.count("[") == 3 and shown.num_sampled == 0


def script(prompt: str, key: int) -> str:
    """A block first, then paths of several lengths, then a summary and an answer."""
    prefix = prompt.rpartition("<|assistant|>")[2]
    if prefix.endswith("["):
        return "1" * (1 + key % 3) + "]"
    return "(5)</think>7"[1:] if prefix.endswith("(") else "<think>{"


def test_in_a_run_every_token_is_sampled_once(tmp_path: Path) -> None:
    agent, engine = ParallelPaths(3), Counting(script)
    parts = {"agent": agent, "sampling": Sampling(max_tokens=40, stop=STOPS), "envs": (Hearing(Arithmetic(2)),)}
    found = flown(save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db", Independent(), engine, **parts)
    assert sorted(found.heard) == sorted(spoken(each) for each in found.rollouts.values())
    for each in found.rollouts.values():
        assert len(each.turns) == 5 and num_valid_blocks(spoken(each)) == 1
        sizes = [len(turn.tokens) for turn in each.turns]
        assert each.turns[4].num_prefix == 2 * 3 + sum(sizes[:3]) - 3 + 2, (
            "three paths with their tags, and two more tags"
        )
    assert found.row["turns"] == 5.0
