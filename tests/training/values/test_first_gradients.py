"""The first gradient of every learned value model by hand: heads of zeros leave the body alone, so that the head's
gradient is a sum over states that a plain forward pass gives. An optimizer like Adam would hide any wrong factor."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.recipes import build, recipe_named
from strop.recipes.value.b_coder import Conservative
from strop.recipes.value.dvpo import FrozenCritic
from strop.recipes.value.q_sharp import Success
from strop.recipes.value.stop_regressing import BinnedCritic
from strop.roles import ValueModel
from strop.training.values.critic import Critic
from strop.training.values.turn_critic import TurnCritic
from strop.training.values.turn_success import TurnSuccess
from strop.types import SUCCESS, Group, Rollout
from tests.building import make_group


def group() -> Group:
    """Three rollouts of 4, 2 and 1 tokens, with rewards and returns of their own, and one that wrote nothing."""
    found = make_group([1.0, 0.25, 0.0, 0.5], lengths=[4, 2, 1, 0])
    stream = np.random.default_rng(0)
    for rollout in found.rollouts:
        said = stream.integers(3, 30, rollout.num_tokens)
        rollout.turns = (replace(rollout.turns[0], prompt=np.array([3, 4]), tokens=said),)
        rollout.returns = stream.uniform(size=rollout.num_tokens).astype(np.float32)
    return found


@torch.no_grad()
def states(reader: torch.nn.Module, rollout: Rollout) -> tuple[Tensor, Tensor, Tensor]:
    """Before and after each token, each with a 1 for the bias: [N, H + 1] twice; logits before each token [N, V]."""
    (turn,) = rollout.turns
    tokens = torch.from_numpy(np.concatenate([turn.prompt, turn.tokens]))
    said = reader(input_ids=tokens.unsqueeze(0), output_hidden_states=True)
    hidden = torch.cat([said.hidden_states[-1][0], torch.ones(len(tokens), 1)], 1)
    first = len(turn.prompt)
    return hidden[first - 1 : -1], hidden[first:], said.logits[0, first - 1 : -1]


def norm_after(values: ValueModel, model: Path, found: Group) -> float:
    values.open(model, 0)
    values.predict([found])
    return values.learn([found])["value_grad_norm"]


def written(found: Group) -> list[Rollout]:
    return [rollout for rollout in found.rollouts if rollout.num_tokens]


@pytest.mark.parametrize("learns_ends", [False, True])
def test_a_critic_learns_the_mean_over_all_states(reader: torch.nn.Module, model: Path, learns_ends: bool) -> None:
    found, total = group(), torch.zeros(1)
    for rollout in written(found):
        before, after, _ = states(reader, rollout)
        total = total - 2 * torch.from_numpy(rollout.returns) @ before  # type: ignore[arg-type]
        if learns_ends:
            total = total - 2 * rollout.reward * after[-1]
    count = 7 + (3 if learns_ends else 0)
    norm = norm_after(Critic(learns_ends=learns_ends), model, found)
    assert norm == pytest.approx(float(total.norm()) / count, rel=1e-4)


def test_bins_learn_the_mean_cross_entropy(reader: torch.nn.Module, model: Path) -> None:
    found, critic, total = group(), BinnedCritic(bins=5), torch.zeros(1)
    for rollout in written(found):
        before, _, _ = states(reader, rollout)
        gap = 1 / 5 - critic.target(torch.from_numpy(rollout.returns))  # softmax of zeros minus the target
        total = total + gap.T @ before
    assert norm_after(critic, model, found) == pytest.approx(float(total.norm()) / 7, rel=1e-4)


def test_success_is_the_mean_within_rollouts_and_then_over_them(reader: torch.nn.Module, model: Path) -> None:
    found, total = group(), torch.zeros(1)
    for rollout in written(found):
        _, after, _ = states(reader, rollout)
        total = total + (0.5 - rollout.reward) * after.mean(0)
    assert norm_after(Success(steps=1), model, found) == pytest.approx(float(total.norm()) / 3, rel=1e-4)


@pytest.mark.parametrize("name", ["digirl", "vsc_rl", "webrl"])
def test_who_is_asked_before_turns_learns_what_to_say_there(reader: torch.nn.Module, model: Path, name: str) -> None:
    """The mean over 4 turns of (0.5 - reward) * the state before each; the first rollout has two of them."""
    found, total = group(), torch.zeros(1)
    (first, *others) = written(found)
    (whole,) = first.turns
    for rollout in others:
        total = total + (0.5 - rollout.reward) * states(reader, rollout)[0][0]
    tokens = np.concatenate([whole.tokens[:3], [5, 6], whole.tokens[3:]])
    before, _, _ = states(reader, replace(first, turns=(replace(whole, tokens=tokens),)))
    total = total + (0.5 - first.reward) * (before[0] + before[5])
    later = replace(whole, prompt=np.array([5, 6]), tokens=whole.tokens[3:], fresh=False)
    first.turns = (replace(whole, tokens=whole.tokens[:3]), later)
    values = build(recipe_named(name), {"model": str(model)}).values
    assert values is not None
    norm = norm_after(replace(values, steps=1), model, found)  # type: ignore[type-var]
    assert norm == pytest.approx(float(total.norm()) / 4, rel=1e-4)


def test_a_turns_probability_is_said_at_all_its_tokens_and_compared_turn_by_turn(model: Path) -> None:
    found, values = group(), TurnSuccess()
    for rollout in found.rollouts:
        rollout.facts[SUCCESS] = rollout.reward
    values.open(model, 0)
    values.predict([found])
    assert [t.values.tolist() for t in found.rollouts if t.values is not None] == [[0.5] * n for n in (4, 2, 1, 0)]
    told = values.learn([found])
    # three turns with rewards 1, .25 and 0, all predicted at .5
    assert told["value_loss"] == pytest.approx((0.25 + 0.0625 + 0.25) / 3)
    assert told["value_bias"] == pytest.approx(0.5 - 1.25 / 3)


def test_a_conservative_value_starts_from_reward_and_gap(reader: torch.nn.Module, model: Path) -> None:
    """V = 0 with slope -tanh(c / 2) / 2 there; goals are 0 but at the end."""
    found, total, slope = group(), torch.zeros(1), -math.tanh(math.acosh(math.e)) / 2
    for rollout in written(found):
        before, _, logits = states(reader, rollout)
        gaps = logits.gather(1, torch.from_numpy(rollout.turns[0].tokens).unsqueeze(1))[:, 0] - logits.max(1).values
        goals = torch.zeros(rollout.num_tokens)
        goals[-1] = rollout.reward
        total = total - 2 * slope * (goals - 0.5 * gaps) @ before
    assert norm_after(Conservative(alpha=0.5), model, found) == pytest.approx(float(total.norm()) / 7, rel=1e-4)


def test_twins_of_a_turn_learn_its_reward_after_its_last_token(reader: torch.nn.Module, model: Path) -> None:
    """Heads set to zero: both Q have the gradient -2 r of the state after the turn, both V none."""
    found, total, critic = group(), torch.zeros(1), TurnCritic(steps=1)
    for rollout in written(found):
        _, after, _ = states(reader, rollout)
        total = total - 2 * rollout.reward * after[-1]
    critic.open(model, 0)
    assert critic._body is not None and critic._target is not None
    with torch.no_grad():
        for body in (critic._body, critic._target):
            body.head.weight.zero_()
    critic.predict([found])
    norm = critic.learn([found])["value_grad_norm"]
    assert norm == pytest.approx(float(total.norm()) * math.sqrt(2) / 3, rel=1e-4)


@pytest.mark.parametrize(
    "values",
    [Critic(), BinnedCritic(), Success(), TurnSuccess(), TurnCritic(), Conservative()],
    ids=lambda each: type(each).__name__,
)
def test_an_rollout_that_wrote_nothing_has_no_values(values: ValueModel, model: Path, tmp_path: Path) -> None:
    found = group()
    values.open(model, 0)
    values.predict([found])
    assert [None if t.values is None else len(t.values) for t in found.rollouts] == [4, 2, 1, 0]
    if isinstance(values, Critic):
        values.save(tmp_path)
        frozen = FrozenCritic(str(tmp_path))
        frozen.open(model, 0)
        frozen.predict([found])
        assert [None if t.values is None else len(t.values) for t in found.rollouts] == [4, 2, 1, 0]
