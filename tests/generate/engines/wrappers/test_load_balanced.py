"""Several engines as one: balanced, siblings together, later turns at home; engines may come, go and be lost."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import numpy as np
import pytest

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, DeliveryError, EngineError
from strop.generate.engines.wrappers.load_balanced import Several
from strop.types import IntArray, Sampling
from tests.placement.light import Letters, written

SAMPLING = Sampling(max_tokens=10)


class Lost(Letters):
    """Gone for good."""

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        await asyncio.sleep(0)
        raise EngineError("was lost 4 times in a row")


def opened(*engines: Letters) -> Several:
    several = Several(engines)
    several.open(Path("nowhere"))
    return several


def prompt_of(number: int, length: int = 5) -> IntArray:
    return np.full(length, number)


async def ask(engine: Several, prompts: list[IntArray], sampling: Sampling = SAMPLING) -> list[Completion]:
    return await asyncio.gather(*(engine.sample(p, sampling, key) for key, p in enumerate(prompts)))


def test_different_prompts_are_spread_by_outstanding_tokens() -> None:
    one, other = Letters(), Letters()
    completions = asyncio.run(ask(opened(one, other), [prompt_of(n, length) for n, length in enumerate((50, 5, 5, 5))]))
    assert one.asked == [0]  # 60 tokens against 15, 30, 45
    assert other.asked == [1, 2, 3]
    assert [c.tokens.tolist() for c in completions[:2]] == [written(0, 50, 10), written(1, 5, 10)]


def test_siblings_stay_together_as_far_as_balance_allows() -> None:
    one, other, third = Letters(), Letters(), Letters()
    engine = opened(one, other, third)
    groups = [prompt_of(group) for group in (1, 2, 3) for _ in range(4)]
    asyncio.run(ask(engine, groups))
    # the first group is read by all three, because an idle engine is worse than a prompt read twice
    assert [e.asked for e in (one, other, third)] == [[0, 3], [1, 4, 5, 6, 7], [2, 8, 9, 10, 11]]


def test_a_large_group_is_shared_rather_than_waited_for() -> None:
    one, other = Letters(), Letters()
    asyncio.run(ask(opened(one, other), [prompt_of(1)] * 32))
    assert abs(len(one.asked) - len(other.asked)) <= 4


def test_branches_go_where_their_beginning_was_written() -> None:
    """And not to an engine that has less to do, nor to one that has read no more than their prompt."""
    one, other = Letters(), Letters()
    engine = opened(one, other)

    async def fork() -> None:
        roots = await ask(engine, [prompt_of(1), prompt_of(1)])  # a prompt that both have read
        assert (one.asked, other.asked) == ([0], [1])
        for key, root in ((10, roots[1]), (11, roots[1]), (12, roots[0]), (13, roots[1])):
            await engine.sample(np.concatenate([prompt_of(1), root.tokens[:4]]), SAMPLING, key)
        assert (one.asked, other.asked) == ([0, 12], [1, 10, 11, 13])
        await engine.sample(np.concatenate([prompt_of(1), roots[1].tokens[:4], prompt_of(3)]), SAMPLING, 14)
        assert other.asked[-1] == 14, "a branch of a branch's beginning, which goes on otherwise"
        await engine.sample(prompt_of(1), SAMPLING, 15)
        assert one.asked[-1] == 15, "a sibling is no branch"
        await engine.load(WeightVersion(1, "new"))
        await engine.sample(np.concatenate([prompt_of(1), roots[1].tokens[:4]]), SAMPLING, 16)
        assert one.asked[-1] == 16, "no keys outlive their weights"

    asyncio.run(fork())


def test_many_branches_are_shared_rather_than_waited_for() -> None:
    one, other = Letters(), Letters()
    engine = opened(one, other)

    async def fork() -> None:
        root = await engine.sample(prompt_of(1), SAMPLING, 0)
        branch = np.concatenate([prompt_of(1), root.tokens[:4]])
        await asyncio.gather(*(engine.sample(branch, SAMPLING, 1 + key) for key in range(32)))
        assert 12 <= len(other.asked) <= len(one.asked)

    asyncio.run(fork())


def test_later_turns_go_home_until_the_weights_change() -> None:
    one, other = Letters(), Letters()
    engine = opened(one, other)

    async def turns() -> None:
        await ask(engine, [prompt_of(1), prompt_of(2, 6)])
        for _ in range(3):
            await engine.sample(prompt_of(9, 30), SAMPLING, 1)  # at once least busy would be the first
        assert (one.asked, other.asked) == ([0], [1, 1, 1, 1])
        await engine.load(WeightVersion(1, "new"))
        await engine.sample(prompt_of(9, 40), SAMPLING, 1)
        assert one.asked == [0, 1]

    asyncio.run(turns())


def test_an_abort_reaches_the_right_engine() -> None:
    engine = opened(Letters(0.01), Letters(0.01))

    async def abort() -> list[Completion]:
        tasks = [asyncio.create_task(engine.sample(prompt_of(k), Sampling(max_tokens=20), k)) for k in range(4)]
        await asyncio.sleep(0.05)
        engine.abort(3)
        return await asyncio.gather(*tasks)

    assert [c.stop is Stop.ABORTED for c in asyncio.run(abort())] == [False, False, False, True]


def test_loading_means_all_of_them() -> None:
    assert asyncio.run(opened(Letters(), Letters()).load(WeightVersion(2, "two"))) == "two"
    with pytest.raises(DeliveryError, match=r"engine 2 \(Letters\) samples from weights nothing after step 2.* two"):
        asyncio.run(opened(Letters(), Letters(), Letters(is_lagging=True)).load(WeightVersion(2, "two")))


def test_engines_come_and_go_and_nothing_is_written_twice() -> None:
    first, second, late = Letters(0.005), Letters(0.005), Letters(0.005)
    engine = opened(first, second)

    async def change() -> list[Completion]:
        await engine.load(WeightVersion(3, "three"))
        tasks = [asyncio.create_task(engine.sample(prompt_of(k), Sampling(max_tokens=40), k)) for k in range(6)]
        await asyncio.sleep(0.05)
        await engine.add(late)
        await engine.remove(0)
        assert engine.engines == (second, late)
        engine.abort(0)  # the request that moved is still found
        return await asyncio.gather(*tasks)

    completions = asyncio.run(change())
    moved = [key for key in first.asked if key in late.asked or second.asked.count(key)]
    assert moved == first.asked and late.version == 3
    assert completions[0].stop is Stop.ABORTED
    for key, completion in list(enumerate(completions))[1:]:
        assert completion.tokens.tolist() == written(key, 5, 40)  # goes on where it was, key and position unchanged
        assert len(completion.logprobs) == len(completion.versions) == 40 and completion.stop is Stop.LENGTH
        assert completion.aux["place"].tolist() == list(range(5, 45))


def test_a_moved_request_with_stop_strings_begins_again() -> None:
    first, second = Letters(0.005), Letters(0.005)
    engine = opened(first, second)

    async def change() -> Completion:
        task = asyncio.create_task(engine.sample(prompt_of(1), Sampling(max_tokens=30, stop=("x",)), 1))
        await asyncio.sleep(0.05)
        await engine.remove(0)
        return await task

    completion = asyncio.run(change())
    assert completion.tokens.tolist() == written(1, 5, 30) and completion.logprobs.tolist() == [-n for n in range(30)]


def test_an_engine_lost_for_good_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    engine = opened(Lost(), Letters())
    completions = asyncio.run(ask(engine, [prompt_of(k) for k in range(6)]))
    assert capsys.readouterr().err == "warning: going on with 1 engines: was lost 4 times in a row\n"
    assert [c.tokens.tolist() for c in completions] == [written(k, 5, 10) for k in range(6)]
    assert len(engine.engines) == 1
    with pytest.raises(EngineError, match="was lost 4 times"):
        asyncio.run(ask(opened(Lost()), [prompt_of(1)]))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least 1 engine"):
        opened()
    with pytest.raises(ConfigurationError, match="last engine"):
        asyncio.run(opened(Letters()).remove(0))
    several = Several((Letters(), Letters(0.5)))
    assert eval(repr(several)) == several == pickle.loads(pickle.dumps(several))
