"""SPA-RL: strop.train.values.progress, strop.train.advantages.progress_returns and strop.generate.agents.grounded."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import numpy as np
import pytest

from strop.environments.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.filter.rewards.last_reply import LastReply
from strop.generate.agents.chat import Chat
from strop.generate.agents.grounded import Grounded
from strop.roles import Environment
from strop.train.advantages.progress_returns import ProgressReturns, turn_rewards
from strop.train.values.progress import Progress
from strop.types import Group, Message, Observation, Task
from tests.building import make_group, turn


def talked(states: list[list[list[float]]], rewards: list[float]) -> Group:
    """Attempts whose turns have two tokens each and the given states at their ends."""
    group = make_group(rewards)
    for attempt, own in zip(group.trajectories, states, strict=True):
        attempt.turns = tuple(turn(2) for _ in own)
        rows = [row for state in own for row in ([0.0] * len(state), state)]
        attempt.notes["hidden"] = np.array(rows, dtype=np.float32)
    return group


def test_contributions_add_up_to_the_reward_and_are_found_turn_by_turn() -> None:
    """A turn is worth its first state: only sums are shown, and single turns are told apart."""
    stream = np.random.default_rng(0)
    states = [stream.normal(size=(int(stream.integers(1, 4)), 3)).tolist() for _ in range(60)]
    group = talked(states, [sum(state[0] for state in own) for own in states])
    progress = Progress(ridge=1e-6)
    progress.open(Path(), 0)
    progress.predict([group])
    assert all(float(np.abs(t.values).sum()) == 0 for t in group.trajectories if t.values is not None)
    progress.learn([group])
    new = talked([[[0.2, 1.0, -1.0], [0.3, 0.5, 2.0], [0.4, -1.0, 0.0]]], [0.9])
    progress.predict([new])
    values = new.trajectories[0].values
    assert values is not None and values.tolist() == pytest.approx([0, 0.2, 0, 0.3, 0, 0.4], abs=1e-4)
    metrics = progress.learn([new])
    assert metrics["value_loss"] == pytest.approx(0.0, abs=1e-6)


def test_the_card() -> None:
    """c = (.2, .3, .4), executed (1, 0, 1): r = (.7, .3, .9); the squared error of the sum against 1 is .01."""
    group = talked([[[0.0]] * 3], [1.0])
    attempt = group.trajectories[0]
    attempt.values = np.array([0, 0.2, 0, 0.3, 0, 0.4], dtype=np.float32)
    attempt.turn_rewards = (0.5, 0.0, 0.5)
    assert turn_rewards(attempt) == pytest.approx([0.7, 0.3, 0.9])
    assert Progress().learn([group])["value_loss"] == pytest.approx(0.01)


def test_a_turn_is_credited_with_all_that_follows() -> None:
    # returns 1.9, 1.2, .9 on two tokens each: mean 4/3, population std sqrt(((.5667)^2 + (.1333)^2 + (.4333)^2) / 3)
    group = talked([[[0.0]] * 3], [1.0])
    attempt = group.trajectories[0]
    attempt.values = np.array([0, 0.2, 0, 0.3, 0, 0.4], dtype=np.float32)
    attempt.turn_rewards = (0.5, 0.0, 0.5)
    ProgressReturns()([group])
    returns = [1.9, 1.9, 1.2, 1.2, 0.9, 0.9]
    mean = sum(returns) / 6
    spread = math.sqrt(sum((value - mean) ** 2 for value in returns) / 6)
    assert attempt.advantages is not None
    assert attempt.advantages.tolist() == pytest.approx([(value - mean) / spread for value in returns], abs=1e-5)
    with pytest.raises(ConfigurationError, match="contributions for 1 tokens, got 0"):
        ProgressReturns()([make_group([1.0])])


def test_a_resumed_estimator_says_the_same(tmp_path: Path) -> None:
    progress, again = Progress(), Progress()
    group = talked([[[1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]], [1.0, 0.0])
    progress.learn([group])
    progress.save(tmp_path)
    again.resume(tmp_path)
    for each in (progress, again):
        each.predict([group])
        found = group.trajectories[1].values
        assert found is not None
        assert float(found[1]) != 0 and found.tolist() == pytest.approx(found.tolist())
    assert again._slopes is not None and progress._slopes is not None
    assert again._slopes.tolist() == progress._slopes.tolist()


class Refusing(Environment):
    """A world of three turns that refuses the second."""

    def __init__(self) -> None:
        self.turns = 0

    async def reset(self, task: Task) -> None: ...

    async def step(self, reply: Message) -> Observation:
        self.turns += 1
        words = {1: "ok", 2: "error: no such key", 3: "error: too late"}[self.turns]
        return Observation((Message("tool", words),), done=self.turns == 3, reward=0.0)

    async def close(self) -> None: ...


class Talking:
    """A dialogue that always says the same."""

    turns = ()
    is_cut = False

    def hear(self, messages: object) -> None: ...

    async def reply(self, sampling: object = None) -> Message:
        return Message("assistant", "<call>get red</call>")


def test_a_refused_turn_is_not_paid_and_the_last_one_is() -> None:
    environment: Environment = Refusing()
    task = KeyValue(1).task(0)
    paid = asyncio.run(Grounded(Chat()).attempt(task, Talking(), environment))  # type: ignore[arg-type]
    assert paid == (0.5, 0.0, 0.5)


def test_the_last_reply_is_checked_by_its_world() -> None:
    world = KeyValue(1)
    group = make_group([0.0, 0.0])
    group.task = world.task(0)
    for attempt in group.trajectories:
        attempt.task = group.task
    assert LastReply((world,))(group) == [world.check(group.task, "2")] * 2
    with pytest.raises(ConfigurationError, match="knows no world 'test'"):
        LastReply((world,))(make_group([0.0]))
