"""Episodes that share processes: answers in blocks as they are ready, and trouble that stays where it belongs."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.isolation.batched_answers import Blocks
from strop.environments.isolation.pool import Pooled
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.generate.rollout import play
from strop.recipes.setting import Setting
from strop.recipes.system.envpool import envpool
from strop.types import Group, Outcome, Rollout, Sampling, Start
from tests.clock import run_virtually
from tests.environments.foul import Foul
from tests.filter.test_scoring import worker_processes

SECONDS = (1.0, 1.0, 10.0, 10.0)  # of a step of each episode


def served(size: int, until: float, threads: int = 4) -> list[tuple[float, int]]:
    """When which episode was answered, if each is sent its next action as soon as it is."""
    answered, blocks = list[tuple[float, int]](), Blocks(size)

    async def episode(number: int, free: asyncio.Semaphore) -> None:
        async def step() -> None:
            async with free:
                await asyncio.sleep(SECONDS[number])

        while asyncio.get_running_loop().time() < until:
            await blocks.through(number, step())
            answered.append((asyncio.get_running_loop().time(), number))

    async def all_of_them() -> None:
        free = asyncio.Semaphore(threads)
        await asyncio.gather(*(episode(number, free) for number in range(len(SECONDS))))

    run_virtually(all_of_them())
    return [each for each in answered if each[0] <= until]


def test_blocks_hold_those_that_are_ready_first() -> None:
    """Four episodes, blocks of two: {0, 1} at 1, 2, ..., 9; 2 and 3 arrive at 10."""
    found = served(2, 10.0)
    assert found[:18] == [(float(time), number) for time in range(1, 10) for number in (0, 1)]
    assert {number for time, number in found[18:]} == {0, 1, 2, 3} and {time for time, _ in found[18:]} == {10.0}


def test_blocks_of_all_are_one_after_the_other_in_order() -> None:
    """Whoever waits for all waits for the slowest: one block per 10 s, in the order of the numbers."""
    assert served(4, 30.0) == [(float(time), number) for time in (10, 20, 30) for number in range(4)]


def test_more_is_answered_than_one_at_a_time() -> None:
    """In 100 s: 2 x 100 + 2 x 10 in blocks of two, 4 x 10 in blocks of all, and 4 or 5 rounds of 22 s one by one."""
    counts = [len(served(size, 100.0, threads)) for size, threads in ((2, 4), (4, 4), (1, 1))]
    assert counts[0] == 220 and counts[1] == 40 and 16 <= counts[2] <= 20


def test_nobody_waits_where_nobody_works_and_a_failure_waits_for_nobody() -> None:
    async def ends() -> list[tuple[str, float]]:
        blocks, found = Blocks(3), list[tuple[str, float]]()

        async def one(number: int, seconds: float, fails: bool = False) -> None:
            async def work() -> None:
                await asyncio.sleep(seconds)
                if fails:
                    raise OSError

            try:
                await blocks.through(number, work())
            except OSError:
                found.append(("failed", asyncio.get_running_loop().time()))
            else:
                found.append((str(number), asyncio.get_running_loop().time()))

        gone = asyncio.ensure_future(one(9, 1.0))
        others = asyncio.gather(one(0, 2.0), one(1, 5.0, True))
        await asyncio.sleep(1.5)
        gone.cancel()  # while it waits for its block: it no longer counts
        await others
        return found

    assert run_virtually(ends())[0] == [("failed", 5.0), ("0", 5.0)]


def played(model: Path, env: Pooled, rounds: Sequence[Sequence[str]]) -> list[list[Rollout]]:
    """Rounds of rollouts, those of a round side by side; the word is what every completion of a rollout says."""
    engine = Scripted(lambda prompt, key: rounds[key // 100][key % 100])
    engine.open(model)

    async def rollouts() -> list[list[Rollout]]:
        policy, found = Policy.load(model, engine, Sampling(max_tokens=16), 256), list[list[Rollout]]()
        for number, words in enumerate(rounds):
            starts = [Start(f"{number}/{at}", 100 * number + at) for at in range(len(words))]
            talks = [policy.dialogue(env.task(0), start) for start in starts]
            found.append(list(await asyncio.gather(*(play(Chat(), env, talk) for talk in talks))))
        await env.close()
        return found

    return asyncio.run(rollouts())


def test_a_process_serves_many_and_a_death_in_it_is_not_for_ever(model: Path) -> None:
    """One process for all: whoever raises fails alone, whoever ends it fails its neighbours, later ones live."""
    env = Pooled(Foul(), processes=1, batch=2, seconds=5.0)
    first, second, third = played(model, env, [["1", "raise", "2", "x"], ["1", "exit", "1"], ["1", "x"]])
    failed, ended = Outcome.FAILED, Outcome.FINISHED
    assert [each.outcome for each in first] == [ended, failed, ended, ended]
    assert first[1].error == "environment foul: OSError: the sandbox is gone"
    assert [each.turn_rewards[-1] for each in first if each.turn_rewards] == [1.0, 1.0, 0.0]
    assert second[1].error == "environment foul: its process died (exit code 3)" and second[1].outcome is failed
    assert [each.outcome for each in third] == [ended, ended]
    groups = [Group(0, first[0].task, first), Group(1, Arithmetic(1).task(0), third)]
    assert replace(env, processes=2).learn(groups) == {"episodes_per_process": 2.0}  # of the environment's own tasks
    assert worker_processes() == []


def test_there_are_two_to_three_episodes_for_each_place_in_a_block() -> None:
    """The paper's rule of thumb: a block is ready while slow ones still run."""
    run = envpool()
    (env,) = run.envs
    at_once = run.groups_per_step * Setting().group_size
    assert isinstance(env, Pooled) and 2 <= at_once / env.batch <= 3


def test_it_is_the_same_env_otherwise() -> None:
    env = Pooled(Arithmetic(1), 3, 2)
    assert (env.name, env.level, env.task(3)) == ("arithmetic", 1, Arithmetic(1).task(3))
    assert eval(repr(env), {"Pooled": Pooled, "Arithmetic": Arithmetic}) == env == pickle.loads(pickle.dumps(env))
    assert env.check(env.task(0), env.task(0).answer) == 1.0
    with pytest.raises(ConfigurationError, match="foul is not ours"):
        Pooled(Foul()).check(Foul().task(0), "1")
    for changes in ({"processes": 0}, {"batch": 0}, {"seconds": 0.0}):
        with pytest.raises(ConfigurationError, match="processes >= 1, batch >= 1 and seconds > 0"):
            Pooled(Arithmetic(1), **changes)
    with pytest.raises(ConfigurationError, match="size >= 1, got 0"):
        Blocks(0)
