"""The critic reads the state before each written token, learns its return, and says how well it foresaw it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from strop.errors import CheckpointError, ConfigurationError, NumericsError
from strop.models.layers.attention import Packed
from strop.models.model import hidden_states
from strop.training.arithmetic.calibration import calibration
from strop.training.values.critic import Critic
from strop.types import Group, Outcome
from tests.training.tiny import make_rollout, make_turn, random_groups, save_llama


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("llama"))


def opened(folder: Path, max_tokens: int = 60, learns_ends: bool = False) -> Critic:
    critic = Critic(learning_rate=1e-2, max_tokens=max_tokens, learns_ends=learns_ends)
    critic.open(folder, 0)
    return critic


def with_returns(groups: list[Group]) -> list[Group]:
    """A return that the text tells: whether the token read last is even."""
    for group in groups:
        for rollout in group.rollouts:
            read = np.concatenate([[*turn.prompt[-1:], *turn.tokens[:-1]] for turn in rollout.turns])
            rollout.returns = (read % 2 == 0).astype(np.float32)
    return groups


def learnt(critic: Critic, groups: list[Group], count: int) -> list[dict[str, float]]:
    rows = []
    for _ in range(count):
        critic.predict(groups)
        rows.append(critic.learn(groups))
    return rows


def values_of(groups: list[Group]) -> list[float]:
    return [float(v) for g in groups for t in g.rollouts if t.values is not None for v in t.values]


def test_it_expects_nothing_at_first_and_learns_what_can_be_predicted(folder: Path) -> None:
    groups = with_returns(random_groups())
    critic = opened(folder)
    critic.predict(groups)
    assert not any(values_of(groups))
    rows = learnt(critic, groups, 25)
    assert rows[0]["explained_variance"] == pytest.approx(0, abs=1e-6)
    assert rows[-1]["explained_variance"] > 0.9
    assert rows[-1]["value_loss"] < 0.1 * rows[0]["value_loss"]


def test_values_are_those_of_the_state_before_each_token(folder: Path) -> None:
    groups = with_returns(random_groups())
    fresh = make_rollout("fresh", [make_turn([1, 2], [3, 4]), make_turn([5], [6, 7], fresh=True)])
    critic = opened(folder)
    learnt(critic, groups, 3)
    critic.predict([Group(0, fresh.task, [fresh])])
    assert critic._body is not None
    body, head = critic._body.model.body, critic._body.head
    expected = []
    for context, first in (([1, 2, 3, 4], 2), ([5, 6, 7], 1)):
        tokens = torch.tensor(context)
        hidden = hidden_states(body, tokens, torch.arange(len(tokens)), Packed([len(tokens)]))
        expected += head(hidden[first - 1 : -1]).squeeze(1).tolist()
    assert values_of([Group(0, fresh.task, [fresh])]) == pytest.approx(expected, abs=1e-5)


def test_no_split_changes_what_is_learnt(folder: Path) -> None:
    groups = with_returns(random_groups())
    whole, split = opened(folder, 10_000), opened(folder, 1)
    assert learnt(whole, groups, 3)[2] == pytest.approx(learnt(split, groups, 3)[2], rel=1e-3)
    whole.predict(groups)
    found = values_of(groups)
    split.predict(groups)
    assert values_of(groups) == pytest.approx(found, abs=1e-4)


def test_it_resumes_to_the_same_bits(folder: Path, tmp_path: Path) -> None:
    groups = with_returns(random_groups())
    straight, saved, resumed = (opened(folder) for _ in range(3))
    expected = learnt(straight, groups, 4)[2:]
    learnt(saved, groups, 2)
    saved.save(tmp_path)
    resumed.resume(tmp_path)
    assert learnt(resumed, groups, 2) == expected
    (tmp_path / "critic_weights.safetensors").write_bytes(b"cut")
    with pytest.raises(CheckpointError, match="cannot read the value model"):
        resumed.resume(tmp_path)


def test_failed_and_empty_rollouts(folder: Path) -> None:
    failed, empty = make_rollout("failed", [make_turn([1], [2])]), make_rollout("empty", [make_turn([1], [])])
    failed.outcome = Outcome.FAILED
    group = Group(0, failed.task, [failed, empty])
    critic = opened(folder)
    critic.predict([group])
    assert failed.values is None
    assert empty.values is not None and len(empty.values) == 0
    with pytest.raises(ConfigurationError, match="got 0"):
        critic.learn([group])


def test_missing_returns_and_numbers_that_are_not_finite(folder: Path) -> None:
    groups = with_returns(random_groups())
    critic = opened(folder)
    groups[0].rollouts[0].returns = None
    with pytest.raises(ConfigurationError, match="returns"):
        critic.learn(groups)
    groups[0].rollouts[0].returns = np.full(groups[0].rollouts[0].num_tokens, np.nan, dtype=np.float32)
    with pytest.raises(NumericsError, match="task-0"):
        critic.learn(groups)
    critic.predict(groups)
    assert not any(values_of(groups))


def test_calibration_by_hand() -> None:
    # errors 0, 1, 0, 1 of returns 0, 1, 2, 3: variance 0.25 of 1.25; values are too low by 0.5
    found = calibration(np.array([0.0, 0.0, 2.0, 2.0]), np.array([0.0, 1.0, 2.0, 3.0]))
    assert found == pytest.approx({"value_loss": 0.5, "value_bias": -0.5, "explained_variance": 0.8})
    assert calibration(np.array([1.0]), np.array([1.0]))["explained_variance"] == 0
