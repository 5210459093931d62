"""SPA-RL: the progress estimator, the returns of its contributions, and the grounding reward."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import LastCompletion
from strop.generate.agents.chat import Chat
from strop.recipes.agent.spa_rl import Contributions, Grounded, ProgressReturns, turn_rewards_of
from strop.roles import Episode, ValueModel
from strop.training.requirements import LOGPROBS, REFERENCE_LOGPROBS
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Message, Metrics, Observation, Task
from tests.building import make_group, turn
from tests.tiny_models import save_pocket_like


@dataclass
class Constant(ValueModel):
    """A critic with a constant prediction."""

    value: float = 0.0

    def open(self, model: Path, seed: int) -> None: ...

    def predict(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            rollout.values = np.full(rollout.num_tokens, self.value, dtype=np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        return {"value_loss": 7.0}


def group_of(states: list[list[list[float]]], rewards: list[float]) -> Group:
    """Rollouts whose turns have two tokens each and the given states after them."""
    group = make_group(rewards)
    for rollout, own in zip(group.rollouts, states, strict=True):
        rollout.turns = tuple(turn(2) for _ in own)
        rows = [row for state in own for row in ([0.0] * len(state), state)]
        rollout.policy_statistics["hidden_after"] = np.array(rows, dtype=np.float32)
    return group


def contributions(group: Group) -> list[list[float]]:
    return [rollout.policy_statistics["contributions"].tolist() for rollout in group.rollouts]


def test_contributions_add_up_to_the_reward_and_are_found_turn_by_turn() -> None:
    """A turn's contribution is its state's first entry; it is recovered from sums over turns."""
    stream = np.random.default_rng(0)
    states = [stream.normal(size=(int(stream.integers(1, 4)), 3)).tolist() for _ in range(60)]
    group = group_of(states, [sum(state[0] for state in own) for own in states])
    progress = Contributions(Constant(0.25), ridge=1e-6)
    progress.open(Path(), 0)
    progress.predict([group])
    assert not any(each for own in contributions(group) for each in own)
    assert all(set(t.values.tolist()) == {0.25} for t in group.rollouts if t.values is not None)
    assert progress.learn([group])["value_loss"] == 7.0  # the critic's own metric
    new = group_of([[[0.2, 1.0, -1.0], [0.3, 0.5, 2.0], [0.4, -1.0, 0.0]]], [0.9])
    progress.predict([new])
    assert contributions(new)[0] == pytest.approx([0.2, 0.3, 0.4], abs=1e-4)
    assert progress.learn([new])["progress_value_loss"] == pytest.approx(0.0, abs=1e-6)


def test_actions_of_one_token_have_different_states(tmp_path: Path) -> None:
    """The state before an action of one token is the same for all actions."""
    trainer, progress = TorchTrainer(), Contributions(Constant(), ridge=1e-6)
    trainer.open(save_pocket_like(tmp_path), 0)
    group = make_group([1.0, 0.0])
    for rollout, action in zip(group.rollouts, (5, 9), strict=True):
        rollout.turns = (replace(turn(1), prompt=np.array([3, 4]), tokens=np.array([action])),)
    trainer.policy_statistic([group], progress.needs)
    progress.learn([group])
    progress.predict([group])
    assert [own[0] for own in contributions(group)] == pytest.approx([1.0, 0.0], abs=0.05)


def worked_example() -> Group:
    """c = (.2, .3, .4), executed (1, 0, 1)."""
    group = group_of([[[0.0]] * 3], [1.0])
    rollout = group.rollouts[0]
    rollout.policy_statistics["contributions"] = np.array([0.2, 0.3, 0.4])
    rollout.values = np.zeros(6, dtype=np.float32)
    rollout.turn_rewards = (0.5, 0.0, 0.5)
    return group


def test_the_worked_example() -> None:
    """r = (.7, .3, .9) on the last tokens of turns; the squared error of the sum against 1 is .01."""
    group = worked_example()
    assert turn_rewards_of(group.rollouts[0]).tolist() == pytest.approx([0, 0.7, 0, 0.3, 0, 0.9])
    assert Contributions(Constant()).learn([group])["progress_value_loss"] == pytest.approx(0.01)


def test_returns_sum_later_rewards_and_the_critic_is_the_baseline() -> None:
    group = worked_example()
    (rollout,) = group.rollouts
    ProgressReturns(trace=1.0)([group])
    assert rollout.returns is not None and rollout.returns.tolist() == pytest.approx([1.9, 1.9, 1.2, 1.2, 0.9, 0.9])
    rollout.values = np.array([2.0, 1.5, 1.0, 1.0, 1.0, 0.5], dtype=np.float32)
    ProgressReturns(trace=1.0)([group])
    advantage = np.array([1.9, 1.9, 1.2, 1.2, 0.9, 0.9]) - rollout.values
    white = (advantage - advantage.mean()) / advantage.std()
    assert rollout.advantages is not None and rollout.advantages.tolist() == pytest.approx(white.tolist(), abs=1e-5)
    # one step ahead only: r_t + V_(t+1) is the return
    ProgressReturns(trace=0.0)([group])
    assert rollout.returns.tolist() == pytest.approx([1.5, 1.7, 1.0, 1.3, 0.5, 0.9])


def test_each_token_has_a_kl_penalty() -> None:
    group = worked_example()
    (rollout,) = group.rollouts
    rollout.policy_statistics["logprobs"] = np.full(6, -1.0, dtype=np.float32)
    rollout.policy_statistics["reference_logprobs"] = np.array([-1, -2, -1, -1, -1, -1], dtype=np.float32)
    ProgressReturns(trace=1.0, kl=0.1)([group])
    assert rollout.returns is not None and rollout.returns.tolist() == pytest.approx([1.8, 1.8, 1.2, 1.2, 0.9, 0.9])
    assert ProgressReturns(kl=0.1).needs == {LOGPROBS, REFERENCE_LOGPROBS} and not ProgressReturns().needs


def test_missing_inputs_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="value for each of 1 tokens, got 0"):
        ProgressReturns()([make_group([1.0])])
    group = make_group([1.0])
    group.rollouts[0].values = np.zeros(1, dtype=np.float32)
    with pytest.raises(ConfigurationError, match="contributions of 1 turns"):
        ProgressReturns()([group])
    with pytest.raises(ConfigurationError, match="hidden_after"):
        Contributions(Constant()).predict([group])


def test_a_resumed_estimator_predicts_the_same(tmp_path: Path) -> None:
    progress, again = Contributions(Constant()), Contributions(Constant())
    group = group_of([[[1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]], [1.0, 0.0])
    progress.learn([group])
    progress.save(tmp_path)
    again.resume(tmp_path)
    found = []
    for each in (progress, again):
        each.predict([group])
        found.append(contributions(group))
    assert found[0] == found[1] and found[0][1][0] != 0


class Refusing(Episode):
    """An environment of three turns that refuses the second."""

    def __init__(self) -> None:
        self.turns = 0

    async def reset(self, task: Task) -> None: ...

    async def step(self, completion: Message) -> Observation:
        self.turns += 1
        words = {1: "ok", 2: "error: no such key", 3: "error: too late"}[self.turns]
        return Observation((Message("tool", words),), done=self.turns == 3, reward=0.0)

    async def close(self) -> None: ...


class SameCompletion:
    """A dialogue with the same completion in every turn."""

    turns = ()
    is_cut = False

    def hear(self, messages: object) -> None: ...

    async def completion(self, sampling: object = None) -> Message:
        return Message("assistant", "<call>get red</call>")


def test_a_refused_turn_gets_no_bonus_and_the_last_one_does() -> None:
    episode: Episode = Refusing()
    task = KeyValue(1).task(0)
    paid = asyncio.run(Grounded(Chat()).rollout(task, SameCompletion(), episode))  # type: ignore[arg-type]
    assert paid == (0.5, 0.0, 0.5)


def test_the_last_completion_is_checked_by_its_env() -> None:
    env = KeyValue(1)
    group = make_group([0.0, 0.0])
    group.task = env.task(0)
    for rollout in group.rollouts:
        rollout.task = group.task
    assert LastCompletion((env,))(group) == [env.check(group.task, "2")] * 2
    with pytest.raises(ConfigurationError, match="is of test:0, and the environments here are keyvalue:1"):
        LastCompletion((env,))(make_group([0.0]))


def test_a_regression_on_nothing_is_refused() -> None:
    for wrong in ({"ridge": 0.0}, {"window": 0}):
        with pytest.raises(ConfigurationError, match="ridge > 0 and window >= 1"):
            Contributions(Constant(), **wrong)  # type: ignore[arg-type]
