"""Value models behind one interface, each with what its card says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.errors import CheckpointError, ConfigurationError
from strop.generate.engines.wrappers.guided import Guided
from strop.recipes.value.b_coder import Conservative, action_values, backed_up, bounded
from strop.recipes.value.dvpo import FrozenCritic, ValueGuided
from strop.recipes.value.q_sharp import QSharp, Success, _loss
from strop.recipes.value.stop_regressing import BinnedCritic
from strop.recipes.value.vas import Vas
from strop.roles import ValueModel
from strop.training.advantages.gae import Gae
from strop.training.advantages.per_turn import TurnAdvantage
from strop.training.arithmetic.turn_returns import on_written, turn_payments, turn_returns
from strop.training.requirements import LOGPROBS, REFERENCE_LOGPROBS
from strop.training.values.critic import Critic
from strop.training.values.turn_critic import TurnCritic, action_targets, by_turn
from strop.training.values.turn_success import TurnSuccess
from strop.types import SUCCESS, Group
from tests.building import make_group, turn


def told_by_prompt(count: int = 8) -> list[Group]:
    """Tasks whose prompt says whether they pay: token 5 does, token 9 does not."""
    groups = []
    for number in range(count):
        group = make_group([float(number % 2 == 0)] * 2, lengths=[3, 2], number=number)
        for rollout in group.rollouts:
            prompt = np.array([3, 5 if number % 2 == 0 else 9])
            rollout.turns = tuple(
                replace(each, prompt=prompt, tokens=np.array([4, 6, 7])[: len(each.tokens)]) for each in rollout.turns
            )
        groups.append(group)
    return groups


LEARNERS: list[ValueModel] = [
    Critic(learning_rate=3e-3),
    BinnedCritic(learning_rate=3e-3),
    Success(learning_rate=3e-3),
    TurnSuccess(learning_rate=3e-3),
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
        for rollout in (rollout for group in groups for rollout in group.rollouts):
            rollout.returns = np.full(rollout.num_tokens, rollout.reward, dtype=np.float32)
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
        found.append([t.values.tolist() for g in groups for t in g.rollouts if t.values is not None])
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
    group.rollouts[0].values = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    rollout = group.rollouts[0]
    found = ValueGuided(trace=trace)._advantage(rollout, np.array([1.0, 2.0, 3.0]))
    assert found.tolist() == pytest.approx(expected)
    ValueGuided(trace=trace)([group])
    white = (found - found.mean()) / found.std()
    assert rollout.advantages is not None and rollout.advantages.tolist() == pytest.approx(white.tolist(), abs=1e-6)


def test_a_frozen_value_may_be_whitened_first_and_tokens_may_pay_the_kl() -> None:
    """V = (1, 2, 3) is (-1, 0, 1) * sqrt(3 / 2); the second token pays .2 of a log-ratio of 1; trace 1 telescopes."""
    group = make_group([9.0], lengths=[3])
    rollout = group.rollouts[0]
    rollout.values = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    rollout.policy_statistics["logprobs"] = np.full(3, -1.0, dtype=np.float32)
    rollout.policy_statistics["reference_logprobs"] = np.array([-1.0, -2.0, -1.0], dtype=np.float32)
    advantage, root = ValueGuided(trace=1.0, kl=0.2, whiten_values=True), np.sqrt(1.5)
    assert advantage.needs == {LOGPROBS, REFERENCE_LOGPROBS} and not ValueGuided().needs
    advantage([group])
    worth = np.array([2 * root - 0.2, root - 0.2, 0.0])
    white = (worth - worth.mean()) / worth.std()
    assert rollout.advantages is not None and rollout.advantages.tolist() == pytest.approx(white.tolist(), abs=1e-6)


def test_a_constant_value_credits_nobody_and_rewards_are_not_read() -> None:
    group = make_group([5.0, -5.0], lengths=[3, 2])
    for rollout in group.rollouts:
        rollout.values = np.full(rollout.num_tokens, 0.7, dtype=np.float32)
    ValueGuided()([group])
    assert all(float(np.abs(t.advantages).max()) == 0 for t in group.rollouts if t.advantages is not None)


def test_phase_one_of_dvpo_regresses_on_the_terminal_reward() -> None:
    group = make_group([1.0], lengths=[3])
    group.rollouts[0].values = np.array([0.3, 0.5, 0.1], dtype=np.float32)
    Gae(trace=1.0, whiten=False)([group])
    found = group.rollouts[0].returns
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
    expected = [t.values.tolist() for g in groups for t in g.rollouts if t.values is not None]
    frozen = FrozenCritic(str(tmp_path))
    frozen.open(model, 0)
    for _ in range(2):
        frozen.predict(groups)
        found = [t.values.tolist() for g in groups for t in g.rollouts if t.values is not None]
        assert [x for row in found for x in row] == pytest.approx([x for row in expected for x in row], abs=1e-6)
        assert "explained_variance" in frozen.learn(groups)
    with pytest.raises(CheckpointError, match="cannot read the value model"):
        FrozenCritic(str(tmp_path / "nowhere")).open(model, 0)


def test_turn_targets_by_hand() -> None:
    """Q -> r + discount * V of the next turn."""
    states = np.array([[0.1, 0.2], [0.5, 0.4]], dtype=np.float32)
    assert action_targets(np.array([0.0, 1.0]), states, 0.9) == pytest.approx(np.array([[0.45, 0.36], [1.0, 1.0]]))


def bandit() -> Group:
    """pi = (.25, .75) of two one-token actions, 5 and 9, of which the first pays 1: four rollouts are the policy."""
    group = make_group([1.0, 0.0, 0.0, 0.0])
    for rollout, action in zip(group.rollouts, (5, 9, 9, 9), strict=True):
        rollout.turns = (replace(rollout.turns[0], prompt=np.array([3, 4]), tokens=np.array([action])),)
    return group


def test_a_turn_critic_learns_the_bandit_and_its_credit_is_the_exact_gradient(model: Path) -> None:
    """Q = (1, 0), V = .25: A = (.75, -.25), and E[A grad log pi] is (.1875, -.1875), from what was learned alone."""
    critic, probability = TurnCritic(learning_rate=1e-3, rate=0.2), np.array([0.25, 0.75])
    critic.open(model, 0)
    for _ in range(60):
        group = bandit()
        critic.predict([group])
        critic.learn([group])
    critic.predict([group])
    TurnAdvantage()([group])
    advantages = np.array([float(each.advantages[0]) for each in group.rollouts if each.advantages is not None])
    assert advantages == pytest.approx([0.75, -0.25, -0.25, -0.25], abs=0.08)
    gradient = sum(probability[a] * advantages[a] * (np.eye(2)[a] - probability) for a in range(2))
    assert gradient == pytest.approx([0.1875, -0.1875], abs=0.02)


def heads(critic: TurnCritic) -> list[torch.Tensor]:
    assert critic._body is not None and critic._target is not None
    return [critic._body.head.weight.detach().clone(), critic._target.head.weight.detach().clone()]


def test_the_twins_are_two_and_come_from_the_seed(model: Path) -> None:
    critics = [TurnCritic(learning_rate=1e-3) for _ in range(3)]
    for critic, seed in zip(critics, (0, 0, 1), strict=True):
        critic.open(model, seed)
    own, slow = heads(critics[0])
    assert torch.equal(own, slow) and torch.equal(own, heads(critics[1])[0])
    assert 0.07 < float(own.std()) * own.shape[1] ** 0.5 < 0.13, "at first they say a tenth for states of unit size"
    assert not torch.equal(own, heads(critics[2])[0])
    group = bandit()
    for _ in range(3):
        critics[0].predict([group])
        critics[0].learn([group])
    for weights in heads(critics[0]):
        assert not torch.equal(weights[0], weights[1]) and not torch.equal(weights[2], weights[3])


def test_credit_is_the_smaller_q_minus_the_smaller_v(model: Path) -> None:
    """Heads that say only their bias: twins Q (.9, .6) and V (.5, .3)."""
    critic = TurnCritic()
    critic.open(model, 0)
    assert critic._body is not None
    with torch.no_grad():
        critic._body.head.weight.zero_()
        critic._body.head.bias.copy_(torch.tensor([0.9, 0.6, 0.5, 0.3]))
    group = bandit()
    critic.predict([group])
    for rollout in group.rollouts:
        assert rollout.policy_statistics["turn_advantages"].tolist() == pytest.approx([0.3])
        assert rollout.values is not None and rollout.values.tolist() == pytest.approx([0.3])


def test_pay_for_a_silent_turn_belongs_to_the_one_before_it() -> None:
    rollout = make_group([1.75], turn_rewards=[(0.25, 0.0, 1.0, 0.5)]).rollouts[0]
    rollout.turns = (turn(0), turn(2), turn(0), turn(1))
    assert on_written(rollout, turn_payments(rollout)) == [1.25, 0.5]


def completions(rewards: dict[int, float]) -> list[Group]:
    """Completion 5 5 END or 6 6 END, by its first token."""
    groups = []
    for number, (first, reward) in enumerate(rewards.items()):
        group = make_group([reward] * 2, lengths=[3, 3], number=number)
        for rollout in group.rollouts:
            said = np.array([first, first, 2])
            rollout.turns = (replace(rollout.turns[0], prompt=np.array([3, 4]), tokens=said),)
        groups.append(group)
    return groups


@pytest.mark.parametrize("values", [Success(learning_rate=1e-3, steps=4), Critic(learning_rate=1e-3, learns_ends=True)])
def test_the_state_after_the_end_is_learned_as_guidance_will_ask_for_it(
    values: Success | Critic, model: Path, tmp_path: Path
) -> None:
    """Right iff the completion says 5: after 5 5 END success is certain, after 6 6 END failure."""
    values.open(model, 0)
    for _ in range(40):
        groups = completions({5: 1.0, 6: 0.0})
        values.predict(groups)
        Gae(whiten=False)(groups)
        values.learn(groups)
    values.save(tmp_path)
    rule = QSharp() if isinstance(values, Success) else Vas()
    guided = Guided(str(tmp_path), rule)
    guided.open(model)
    for first, expected in ((5, 1.0), (6, 0.0)):
        for said in ([first], [first, first], [first, first, 2]):
            told = guided.told(torch.tensor([[3, 4, *said]]))
            found = float(told.sigmoid() if isinstance(rule, QSharp) else told)
            assert found == pytest.approx(expected, abs=0.15), (first, said)


def test_every_rollout_weighs_the_same_in_a_success_model(model: Path) -> None:
    """Heads of zeros: the gradient of the bias is the mean over rollouts of (0.5 - reward), whatever their lengths."""
    values = Success()
    values.open(model, 0)
    rollouts = make_group([1.0, 0.0, 0.0], lengths=[9, 1, 2]).rollouts
    assert values._body is not None
    (part,) = values._body.parts(rollouts)
    (_loss(values._body.read(part), part) / 3).backward()  # type: ignore[no-untyped-call]
    assert values._body.head.bias.grad is not None
    assert float(values._body.head.bias.grad) == pytest.approx((-0.5 + 0.5 + 0.5) / 3, abs=1e-6)


def test_values_of_turns_are_read_where_turns_begin_and_end() -> None:
    group = make_group([1.0])
    rollout = group.rollouts[0]
    rollout.turns = (turn(2), turn(3))
    before, after = np.arange(20, dtype=np.float32).reshape(5, 4), -np.arange(20, dtype=np.float32).reshape(5, 4)
    actions, states = by_turn(np.stack([before, after], 1), rollout)
    assert actions.tolist() == [[-4, -5], [-16, -17]] and states.tolist() == [[2, 3], [10, 11]]
    for unnoted in (group, make_group([1.0])):
        with pytest.raises(ConfigurationError, match="set values=TurnCritic"):
            TurnAdvantage()([unnoted])


def test_a_conservative_q_keeps_the_models_distribution_and_backs_up_its_favourite() -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0]], dtype=torch.float64)
    gaps = logits - logits.max()
    for value in (-3.0, 0.0, 0.9):
        q = action_values(gaps, torch.tensor(value, dtype=torch.float64), alpha=0.5)
        torch.testing.assert_close((q / 0.5).softmax(-1), logits.softmax(-1))
    # two steps: the favourite second action d pays -1, c would pay +1: Q(s0) = V(s1) as d's fixed point says
    assert backed_up(np.array([0.0, -1.0]), -1.0, 1.0).tolist() == [-1.0, -1.0]
    assert backed_up(np.array([0.2, 0.5, 0.1]), 1.0, 0.9) == pytest.approx([0.45, 0.09, 1.0])


def test_a_conservative_value_makes_up_for_the_gap(model: Path) -> None:
    """One token with gap g and reward -1: Q = alpha g + V is the reward at V = -1 - alpha g."""
    values, group = Conservative(alpha=0.5, learning_rate=3e-3), make_group([-1.0])
    values.open(model, 0)
    assert values._body is not None
    (part,) = values._body.parts(group.rollouts)
    gap = float(values._gaps(part))
    assert gap < -0.2, "a gap of nothing would prove nothing"
    for _ in range(80):
        values.predict([group])
        values.learn([group])
    values.predict([group])
    (rollout,) = group.rollouts
    assert rollout.values is not None and float(rollout.values[0]) == pytest.approx(-1 - 0.5 * gap, abs=0.03)


def test_a_conservative_value_of_another_run_stands_still(model: Path, tmp_path: Path) -> None:
    values, group = Conservative(learning_rate=1e-2), make_group([-1.0])
    values.open(model, 0)
    values.learn([group])
    values.save(tmp_path)
    found = []
    frozen = Conservative(folder=str(tmp_path), learning_rate=1e-2)
    frozen.open(model, 0)
    for each in (values, frozen, frozen):
        each.predict([group])
        assert group.rollouts[0].values is not None
        found.append(group.rollouts[0].values.tolist())
        if each is frozen:
            assert "value_grad_norm" not in frozen.learn([group])
    assert found[0] == found[1] == found[2] != [0.0]


def test_bounded_values_start_at_zero_and_reach_one_and_no_more() -> None:
    found = bounded(torch.linspace(-60, 60, 1201, dtype=torch.float64))
    assert float(bounded(torch.zeros(1, dtype=torch.float64))) == pytest.approx(0.0, abs=1e-12)
    assert 0.999 < float(found.max()) <= 1.0 and float(found[0]) == pytest.approx(
        1 - 0.5 * 56.685 + np.log(2), abs=1e-2
    )


def test_success_is_learned_on_any_scale_of_rewards(model: Path) -> None:
    """A reward of 10 is a success of 1; where no reward says what is right, nothing is learned."""
    values, found = Success(), make_group([10.0, 1.0])
    values.open(model, 0)
    for rollout in found.rollouts:
        rollout.facts.pop(SUCCESS, None)
    with pytest.raises(ConfigurationError, match="no reward says how right"):
        values.learn([found])
    for rollout, right in zip(found.rollouts, (1.0, 0.0), strict=True):
        rollout.facts[SUCCESS] = right
    values.predict([found])
    assert values.learn([found])["value_bias"] == pytest.approx(0.0)


def test_returns_of_turns_are_discounted() -> None:
    """Paid 1, 2 and 4 at a discount of one half: 4, 2 + 2 and 1 + 2."""
    rollout = make_group([7.0]).rollouts[0]
    rollout.turns, rollout.turn_rewards = rollout.turns * 3, (1.0, 2.0, 4.0)
    assert turn_returns(rollout, 0.5) == [3.0, 4.0, 4.0]
