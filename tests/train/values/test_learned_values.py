"""Value models behind one interface, each with what its card says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.errors import CheckpointError, ConfigurationError
from strop.roles import ValueModel
from strop.train.advantages.gae import Gae
from strop.train.advantages.turn_advantage import TurnAdvantage
from strop.train.advantages.value_guided import ValueGuided
from strop.train.values.binned_critic import BinnedCritic
from strop.train.values.conservative import Conservative, action_values, backed_up, bounded, free_rewards
from strop.train.values.critic import Critic
from strop.train.values.frozen_critic import FrozenCritic
from strop.train.values.success import Success
from strop.train.values.turn_critic import TurnCritic, action_targets, by_turn
from strop.types import Group
from tests.building import make_group, turn
from tests.models import save_pocket_like


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pocket_like(tmp_path_factory.mktemp("model"))


def told_by_prompt(count: int = 8) -> list[Group]:
    """Tasks whose prompt says whether they pay: token 5 does, token 9 does not."""
    groups = []
    for number in range(count):
        group = make_group([float(number % 2 == 0)] * 2, lengths=[3, 2], number=number)
        for attempt in group.trajectories:
            prompt = np.array([3, 5 if number % 2 == 0 else 9])
            attempt.turns = tuple(
                replace(each, prompt=prompt, tokens=np.array([4, 6, 7])[: len(each.tokens)]) for each in attempt.turns
            )
        groups.append(group)
    return groups


LEARNERS: list[ValueModel] = [
    Critic(learning_rate=3e-3),
    BinnedCritic(learning_rate=3e-3),
    Success(learning_rate=3e-3),
    TurnCritic(learning_rate=3e-3, discount=1.0, rate=0.5),
    Conservative(alpha=0.0, learning_rate=3e-3),
]


@pytest.mark.parametrize("values", LEARNERS, ids=lambda values: type(values).__name__)
def test_each_learns_what_a_prompt_promises_and_says_how_well(values: ValueModel, model: Path, tmp_path: Path) -> None:
    values.open(model, 0)
    first = last = {"value_loss": 0.0}
    for step in range(40):
        groups = told_by_prompt()
        values.predict(groups)
        for attempt in (attempt for group in groups for attempt in group.trajectories):
            attempt.returns = np.full(attempt.num_tokens, attempt.reward, dtype=np.float32)
        last = values.learn(groups)
        first = last if step == 0 else first
    assert {"value_loss", "value_bias", "explained_variance"} <= set(last)
    assert last["value_loss"] < 0.3 * max(first["value_loss"], 0.1)
    assert last["explained_variance"] > 0.7
    values.save(tmp_path)  # type: ignore[attr-defined]
    again = replace(values)  # type: ignore[type-var]
    again.open(model, 0)
    again.resume(tmp_path)
    found = []
    for each in (values, again):
        groups = told_by_prompt()
        each.predict(groups)
        found.append([t.values.tolist() for g in groups for t in g.trajectories if t.values is not None])
    assert found[0] == found[1]


def test_bins_by_hand() -> None:
    four = BinnedCritic(low=0.0, high=1.0, bins=4)
    target = four.target(torch.tensor([0.25], dtype=torch.float64))
    assert target[0].tolist() == pytest.approx([0.449833, 0.449833, 0.096154, 0.004180], abs=1e-6)
    assert float(target[0] @ four.centres.double()) == pytest.approx(0.288670, abs=1e-6)
    atari = BinnedCritic(low=-10.0, high=10.0, bins=51)
    wide = atari.target(torch.tensor([0.3, 9.9, 50.0], dtype=torch.float64))
    centres = atari.centres.double()
    assert float(wide[0] @ centres) == pytest.approx(0.3000019, abs=1e-5)
    assert int((wide[0] > 1e-3).sum()) == 6
    assert float(wide[1] @ centres) == pytest.approx(9.698, abs=1e-3)
    assert torch.isfinite(wide).all()  # a return beyond the range is held


def test_bins_gradient_and_sharp_limit() -> None:
    critic = BinnedCritic(low=0.0, high=1.0, bins=4, smoothing=1e-4)
    sharp = critic.target(torch.tensor([0.3], dtype=torch.float64))
    assert sharp[0].tolist() == pytest.approx([0, 1, 0, 0])  # one-hot, not split between two
    logits = torch.tensor([[0.1, -0.3, 0.7, 0.2]], dtype=torch.float64, requires_grad=True)
    target = BinnedCritic(low=0.0, high=1.0, bins=4).target(torch.tensor([0.6], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(-(target * logits.log_softmax(-1)).sum(), logits)
    torch.testing.assert_close(gradient, logits.detach().softmax(-1) - target)
    with pytest.raises(ConfigurationError, match="bins >= 2"):
        BinnedCritic(bins=1)


@pytest.mark.parametrize(
    ("trace", "expected"), [(1.0, [2.0, 1.0, 0.0]), (0.95, [1.95, 1.0, 0.0])], ids=["telescopes", "card"]
)
def test_a_frozen_values_credit(trace: float, expected: list[float]) -> None:
    group = make_group([0.0], lengths=[3])
    group.trajectories[0].values = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    ValueGuided(trace=trace, whiten=False)([group])
    found = group.trajectories[0].advantages
    assert found is not None and found.tolist() == pytest.approx(expected)


def test_a_constant_value_credits_nobody_and_rewards_are_not_read() -> None:
    group = make_group([5.0, -5.0], lengths=[3, 2])
    for attempt in group.trajectories:
        attempt.values = np.full(attempt.num_tokens, 0.7, dtype=np.float32)
    ValueGuided()([group])
    assert all(float(np.abs(t.advantages).max()) == 0 for t in group.trajectories if t.advantages is not None)


def test_phase_one_of_dvpo_regresses_on_the_terminal_reward() -> None:
    group = make_group([1.0], lengths=[3])
    group.trajectories[0].values = np.array([0.3, 0.5, 0.1], dtype=np.float32)
    Gae(trace=1.0, whiten=False)([group])
    found = group.trajectories[0].returns
    assert found is not None and found.tolist() == pytest.approx([1.0] * 3)


def test_a_frozen_critic_says_what_it_was_saved_with_and_never_learns(model: Path, tmp_path: Path) -> None:
    critic = Critic(learning_rate=1e-2)
    critic.open(model, 0)
    groups = told_by_prompt(2)
    critic.predict(groups)
    Gae(whiten=False)(groups)
    critic.learn(groups)
    critic.save(tmp_path)
    critic.predict(groups)
    expected = [t.values.tolist() for g in groups for t in g.trajectories if t.values is not None]
    frozen = FrozenCritic(str(tmp_path))
    frozen.open(model, 0)
    for _ in range(2):
        frozen.predict(groups)
        found = [t.values.tolist() for g in groups for t in g.trajectories if t.values is not None]
        assert [x for row in found for x in row] == pytest.approx([x for row in expected for x in row], abs=1e-6)
        assert "explained_variance" in frozen.learn(groups)
    with pytest.raises(CheckpointError, match="cannot read the value model"):
        FrozenCritic(str(tmp_path / "nowhere")).open(model, 0)


def test_turn_targets_by_hand_and_the_bandits_exact_gradient() -> None:
    """Q -> r + discount * V of the next turn; in a one-turn bandit Q = r and A grad log pi is the policy gradient."""
    states = np.array([[0.1, 0.2], [0.5, 0.4]], dtype=np.float32)
    assert action_targets(np.array([0.0, 1.0]), states, 0.9) == pytest.approx(np.array([[0.45, 0.36], [1.0, 1.0]]))
    chance, reward = np.array([0.25, 0.75]), np.array([1.0, 0.0])
    value = float(chance @ reward)
    total = np.zeros(2)
    for action in range(2):
        group = make_group([reward[action]])
        group.trajectories[0].notes["turn_advantages"] = np.array([reward[action] - value])
        TurnAdvantage()([group])
        found = group.trajectories[0].advantages
        assert found is not None
        total += chance[action] * float(found[0]) * (np.eye(2)[action] - chance)
    assert total.tolist() == pytest.approx([0.1875, -0.1875])


def test_values_of_turns_are_read_where_turns_begin_and_end() -> None:
    group = make_group([1.0])
    attempt = group.trajectories[0]
    attempt.turns = (turn(2), turn(3))
    actions, states = by_turn(np.arange(20, dtype=np.float32).reshape(5, 4), attempt)
    assert actions.tolist() == [[4, 5], [16, 17]] and states.tolist() == [[2, 3], [10, 11]]
    with pytest.raises(ConfigurationError, match="set values=TurnCritic"):
        TurnAdvantage()([group])


def test_a_conservative_q_keeps_the_models_distribution_and_backs_up_its_favourite() -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0]], dtype=torch.float64)
    gaps = logits - logits.max()
    for value in (-3.0, 0.0, 0.9):
        q = action_values(gaps, torch.tensor(value, dtype=torch.float64), alpha=0.5)
        torch.testing.assert_close((q / 0.5).softmax(-1), logits.softmax(-1))
    # two steps: the favourite second action d pays -1, c would pay +1: Q(s0) = V(s1) as d's fixed point says
    assert backed_up(np.array([0.0, -1.0]), -1.0, 1.0).tolist() == [-1.0, -1.0]
    assert backed_up(np.array([0.2, 0.5, 0.1]), 1.0, 0.9) == pytest.approx([0.45, 0.09, 1.0])


def test_the_free_reward_of_a_fixed_point_is_the_reward() -> None:
    """Where Q(s_t, a_t) = r_t + discount * V(s_(t+1)), Q - discount * V gives r back."""
    rewards, discount = np.array([0.0, 0.0, 1.0]), 0.9
    gaps = np.array([-0.2, -1.0, 0.0])
    values = np.zeros(4)
    for t in reversed(range(3)):
        values[t] = rewards[t] + discount * values[t + 1] - gaps[t]  # so that alpha * gap + V is the backup
    assert free_rewards(gaps, values[:3], 1.0, discount) == pytest.approx(rewards)


def test_bounded_values_start_at_zero_and_reach_one_and_no_more() -> None:
    found = bounded(torch.linspace(-60, 60, 1201, dtype=torch.float64))
    assert float(bounded(torch.zeros(1, dtype=torch.float64))) == pytest.approx(0.0, abs=1e-12)
    assert 0.999 < float(found.max()) <= 1.0 and float(found[0]) == pytest.approx(
        1 - 0.5 * 56.685 + np.log(2), abs=1e-2
    )


def test_success_needs_probabilities(model: Path) -> None:
    values = Success()
    values.open(model, 0)
    with pytest.raises(ConfigurationError, match="from 0 to 1, got 2"):
        values.learn([make_group([2.0, 0.0])])
