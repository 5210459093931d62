"""96 kB of text that is meant to be slow to read: answered at once wherever nothing could interrupt it.

What runs in the run's own process (environments and rewards that call themselves inline) blocks everything else while
it reads; measured is the processor time of this thread, so that a busy machine changes nothing. All others run in
processes with a deadline: what MathVerify makes of such texts is asked there, while the loop goes on.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from strop.attack.hostile_completions import _BOMBS
from strop.capabilities import Closes, inside
from strop.catalogue.record import recipe_files
from strop.errors import StropError
from strop.filter.judges.arithmetic_steps import Calculations
from strop.filter.rewards.math_verify import MathVerify
from strop.filter.scoring import Scorer, is_inline
from strop.recipes.environments import bundled_envs
from strop.roles import Environment, Reward
from strop.types import Group, Message, Outcome, Rollout, Task, Turn
from tests.recipes.every import plain_run

SECONDS, SIZE = 0.05, 96_000
STREAM = random.Random(0)
TEXTS = {
    **{f"{piece!r} again and again": piece * (SIZE // len(piece)) for piece in _BOMBS},
    "calls without an end": "<call>" * (SIZE // 6) + "</call>",
    "pairs of tags": "<think>1</think>" * (SIZE // 16),
    "brackets inside each other": "(" * (SIZE // 2) + ")" * (SIZE // 2),
    "calculations": "1+1=2 " * (SIZE // 6) + "3",
    "every number": " ".join(str(number) for number in range(SIZE // 6)),
    "noise": "".join(chr(STREAM.randrange(32, 0x3000)) for _ in range(SIZE // 3)),
}
FEW = [told for number, told in enumerate(TEXTS) if number % 3 == 0 or number >= len(_BOMBS)]
ENVS: dict[str, Environment] = {name: kind(2) for name, kind in bundled_envs().items() if kind(2).is_inline}


def quickest(work: Callable[[], Any], tries: int = 3) -> float:
    """Processor seconds of this thread, the best of some; what takes far too long is interrupted."""
    best = float("inf")
    for _ in range(tries):
        begun = time.thread_time()
        signal.signal(signal.SIGVTALRM, _interrupt)
        signal.setitimer(signal.ITIMER_VIRTUAL, 10 * SECONDS, 10 * SECONDS)  # again: somebody may catch it
        try:
            work()
        except InterruptedError:
            return min(best, time.thread_time() - begun)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        best = min(best, time.thread_time() - begun)
        if best < SECONDS / 2:
            break
    return best


def _interrupt(*_: Any) -> None:
    raise InterruptedError


@pytest.mark.parametrize("name", ENVS)
def test_a_env_of_ours_answers_long_hostile_completions_at_once(name: str) -> None:
    env = ENVS[name]
    task = env.task(0)
    for told, text in TEXTS.items():
        episode = env.episode()
        asyncio.run(episode.reset(task))
        step = quickest(lambda: asyncio.run(episode.step(Message("assistant", text))))  # noqa: B023
        checks = quickest(lambda: (env.check(task, text), env.answer(text)))  # noqa: B023
        assert max(step, checks) < SECONDS, (told, step, checks)


def rollouts_at(task: Task, text: str) -> Group:
    return Group(0, task, [rollout_at(task, name, said) for name, said in (("0", text), ("1", "1"))])


def rollout_at(task: Task, name: str, text: str) -> Rollout:
    count = len(text) + 1
    tokens: Any = np.zeros(count, np.int64)
    turn = Turn(tokens[:0], tokens, np.zeros(count, np.float32), tokens, Message("assistant", text))
    return Rollout(name, task, (turn,), Outcome.FINISHED, turn_rewards=(0.0,))


def inline_rewards() -> dict[str, tuple[Environment, Reward]]:
    """Those of all recipes that run in the run's own process, each once, with an environment that they are used in."""
    found: dict[str, tuple[Environment, Reward]] = {}
    for name in recipe_files():
        run = plain_run(name)
        for reward in (each for each in run.rewards if is_inline(each) and not inside(each, MathVerify)):
            found.setdefault(type(reward).__name__, (run.envs[0], reward))
    return found


def test_a_reward_of_ours_marks_long_hostile_completions_at_once() -> None:
    rewards = inline_rewards()
    assert len(rewards) > 15
    slow = {}
    with asyncio.Runner() as loop:  # one for all: a sandbox keeps its processes from one question to the next
        for name, (env, reward) in rewards.items():
            for told in FEW:
                group = rollouts_at(env.task(0), TEXTS[told])
                if (seconds := quickest(lambda: asked(reward, group, loop))) >= SECONDS:  # noqa: B023
                    slow[name, told] = seconds
            for each in inside(reward, Closes):
                loop.run(each.close())
    assert not slow


def asked(reward: Reward, group: Group, loop: asyncio.Runner) -> None:
    """Whatever it says: one that needs what a strategy would have noted may refuse."""
    try:
        returned = reward(group)
        if asyncio.iscoroutine(returned):
            loop.run(returned)
    except (KeyError, ValueError, StropError):
        return


def test_a_completion_of_more_steps_than_are_read_ends_in_one_that_does_not_hold() -> None:
    task = Task((Message("user", "1+1="),), "2", "test")
    most, more = (Calculations().steps(rollout_at(task, "0", "1+1=2 " * count + "2")) for count in (1000, 1001))
    assert [step.value for step in most] == [1.0] * 1001 and (most[-1].start, most[-1].end) == (5999, 6001)
    assert [step.value for step in more] == [1.0] * 1000 + [0.0] and (more[-1].start, more[-1].end) == (6000, 6007)


def test_one_that_is_not_ours_answers_by_its_deadline_while_the_loop_goes_on() -> None:
    task = Task((Message("user", "1+1="),), "2", "test")
    texts = [TEXTS[told] for told in ("'1+' again and again", "every number")]
    gaps: list[float] = []

    async def tick() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - before)

    async def score() -> list[Group]:
        scorer, ticking = Scorer([MathVerify()], seconds=1.0, workers=1), asyncio.create_task(tick())
        groups = [Group(0, task, [rollout_at(task, "0", text)]) for text in (*texts, "so $2$")]
        for group in groups:
            await scorer(group)
        ticking.cancel()
        await scorer.close()
        return groups

    *hostile, honest = [group.rollouts[0] for group in asyncio.run(score())]
    assert honest.reward == 1.0
    for rollout in hostile:
        assert rollout.reward == 0.0 and (rollout.is_scored or "no answer within 1 s" in rollout.error)
    assert len(gaps) > 20 and sorted(gaps)[len(gaps) // 2] < 0.2
