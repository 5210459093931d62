"""Pools with wrong keys, and levels that lie: what is true of their tasks, and that nothing else is changed."""

from __future__ import annotations

import asyncio

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.data.lookup import env_of
from strop.environments.wrappers.wrong_controls import Miskeyed, Mislabelled, lying
from strop.errors import ConfigurationError
from strop.types import Message


def test_half_of_a_pool_cannot_be_solved_and_reads_as_before() -> None:
    inner = Countdown(4, seed=2)
    env = Miskeyed(inner, tasks=40, share=0.5)
    paid = [env.check(env.task(place), inner.solution(inner.task(place))) for place in range(40)]
    assert paid == [0.0 if env.is_broken(place) else 1.0 for place in range(40)] and sum(paid) == 20
    assert all(env.task(place).messages == inner.task(place).messages for place in range(40))
    assert len({env.task(place).id for place in range(40)}) == 40
    assert {(env.task(place).source, env.task(place).level) for place in range(40)} == {("countdown", 4)}
    assert any(env.is_broken(place) for place in range(5, 20)) and not all(env.is_broken(p) for p in range(20))


def test_a_pool_comes_back_and_held_out_tasks_stay_right() -> None:
    inner = Arithmetic(2)
    env = Miskeyed(inner, tasks=5, share=1.0)
    assert env.task(7) == env.task(2) and env.num_tasks() == 5
    assert env.num_tasks(heldout=True) is None and env.task(9, heldout=True) == inner.task(9, heldout=True)
    assert [env.check(env.task(p), inner.solution(inner.task(p))) for p in range(5)] == [0.0] * 5
    assert env.pays and env.is_inline
    for wrong in ({"tasks": 0}, {"share": 1.5}):
        with pytest.raises(ConfigurationError, match="tasks >= 1 and a share from 0 to 1"):
            Miskeyed(inner, **wrong)  # type: ignore[arg-type]


def test_levels_that_lie_hold_every_env_alike() -> None:
    inner = (Arithmetic(1), Countdown(4), Arithmetic(8))
    envs = lying(inner)
    assert [env.level for env in envs] == [0, 1, 2]
    for env in envs:
        homes = [env.true(env.task(index))[0] for index in range(300)]
        assert all(70 < sum(home == each for home in homes) < 130 for each in inner)
    asked = [env.task(index) for env in envs for index in range(50)]
    true = [env.true(task)[0] for env in envs for task in map(env.task, range(50))]
    places = [index * 3 + env.level for env in envs for index in range(50)]
    assert len(set(zip(places, true, strict=True))) == 150  # no task of any environment stands under two levels
    assert all(env_of(envs, task).level == task.level for task in asked)


def test_a_task_is_judged_by_the_env_it_is_really_from() -> None:
    inner = (Arithmetic(1), Countdown(3))
    env = Mislabelled(inner, 1, 2)

    async def paid(place: int, completion: str) -> float | None:
        episode = env.episode()
        await episode.reset(env.task(place))
        seen = await episode.step(Message("assistant", completion))
        await episode.close()
        return seen.reward

    for place in range(12):
        home, known = env.true(env.task(place))
        right = home.solution(known)  # type: ignore[attr-defined]
        assert known == home.task(2 * place + 1)
        assert asyncio.run(paid(place, right)) == env.check(env.task(place), right) == 1.0
        assert asyncio.run(paid(place, "no")) == 0.0
    with pytest.raises(ConfigurationError, match="level below 2"):
        Mislabelled(inner, 2, 2)
    with pytest.raises(ConfigurationError, match="needs 2 environments"):
        Mislabelled(inner[:1], 0, 1)
