"""Rewards that a teacher's logits imply: by hand, the telescope of the card, and against a plain forward pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from strop.errors import ConfigurationError
from strop.recipes.reward.teacher_forcing_rewards import TeacherForced, returns_to_go
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Outcome, Sampling
from tests.building import make_group
from tests.tiny_models import save_pocket_like
from tests.training.tiny import make_rollout, make_turn


def with_statistic(rows: list[list[float]]) -> Group:
    """One rollout with the teacher's values of each token: the token's, the best one's, and the expected one."""
    group = make_group([0.0], lengths=[len(rows)])
    group.rollouts[0].policy_statistics["teacher_values"] = np.array(rows, dtype=np.float32).reshape(-1, 3)
    return group


def test_by_hand() -> None:
    """r = 4 - 5, 2 - 3, 3 - 0: from the end 3, 2, 1; less the expected 1, 2, 4 and divided by 10."""
    group = with_statistic([[4, 6, 1], [2, 5, 2], [3, 3, 4]])
    TeacherForced("x", divisor=10.0)([group])
    found = group.rollouts[0].advantages
    assert found is not None and found.tolist() == pytest.approx([0.0, 0.0, -0.1])
    TeacherForced("x", divisor=10.0, has_baseline=False)([group])
    found = group.rollouts[0].advantages
    assert found is not None and found.tolist() == pytest.approx([0.1, 0.2, 0.3])
    TeacherForced("x", divisor=1.0, limit=2.5, has_baseline=False)([group])
    found = group.rollouts[0].advantages
    assert found is not None and found.tolist() == pytest.approx([1.0, 2.0, 2.5])
    assert TeacherForced("x").learn([group]) == pytest.approx({"teacher_regret": -5 / 3})  # -2, -3, 0


def test_the_return_of_a_text_telescopes() -> None:
    """f(s_1, a_1) and, from the second token on, what each is below the best; a greedy text earns f(s_1, a_1)."""
    random = np.random.default_rng(0)
    values = random.normal(size=(7, 3))
    values[:, 1] = values[:, 0] + np.abs(random.normal(size=7))
    expected = values[0, 0] + sum(values[t, 0] - values[t, 1] for t in range(1, 7))
    assert returns_to_go(values)[0] == pytest.approx(expected)
    values[1:, 0] = values[1:, 1]
    assert returns_to_go(values)[0] == pytest.approx(values[0, 0])


def test_who_wrote_nothing_or_does_not_count_gets_nothing() -> None:
    silent, failed = with_statistic([]), with_statistic([[1, 1, 1]])
    failed.rollouts[0].outcome = Outcome.FAILED
    TeacherForced("x")([silent, failed])
    found = silent.rollouts[0].advantages
    assert found is not None and found.shape == (0,) and failed.rollouts[0].advantages is None
    assert TeacherForced("x").learn([silent, failed]) == {}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="divisor and limit > 0, got 0 and 1"):
        TeacherForced("x", divisor=0)
    with pytest.raises(ConfigurationError, match="teacher_values"):
        TeacherForced("x")([make_group([1.0])])


@torch.no_grad()
def test_a_trainer_records_the_teacher_s_values(tmp_path: Path) -> None:
    """Against a plain forward pass of the teacher, at a temperature that must not count, over two turns."""
    torch.manual_seed(0)
    student, teacher = save_pocket_like(tmp_path / "student"), save_pocket_like(tmp_path / "teacher")
    model = AutoModelForCausalLM.from_pretrained(teacher)
    for weights in model.parameters():
        weights.add_(0.3 * torch.randn_like(weights))
    model.save_pretrained(teacher)
    trainer, advantage = TorchTrainer(), TeacherForced(str(teacher), divisor=1.0, limit=1e9)
    trainer.open(student, 0)
    turns = [make_turn([1, 2], [3, 4]), make_turn([5], [6, 7])]
    rollout = make_rollout("one", [replace(turn, sampling=Sampling(temperature=0.5)) for turn in turns])
    group = Group(0, rollout.task, [rollout])
    trainer.policy_statistic([group], advantage.needs)
    advantage([group])
    logits = model(input_ids=torch.tensor([[1, 2, 3, 4, 5, 6, 7]])).logits[0].double()
    values = logits - logits.mean(-1, keepdim=True)
    states, tokens = [1, 2, 4, 5], [3, 4, 6, 7]  # what each token was chosen in
    expected = []
    for place in range(4):
        later = range(place, 4)
        earned = sum(float(values[states[t], tokens[t]]) for t in later)
        earned -= sum(float(values[states[t + 1]].max()) for t in later if t < 3)
        expected.append(earned - float((values[states[place]].softmax(-1) * values[states[place]]).sum()))
    assert rollout.advantages is not None and rollout.advantages.tolist() == pytest.approx(expected, abs=1e-4)
    replace(advantage, has_baseline=False)([group])
    plain = [e + float((values[s].softmax(-1) * values[s]).sum()) for e, s in zip(expected, states, strict=True)]
    assert rollout.advantages.tolist() == pytest.approx(plain, abs=1e-4), "where centring logits counts"
