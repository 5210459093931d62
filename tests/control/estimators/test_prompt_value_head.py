"""A value model at the prompt: its regression by hand and by autograd, its labels, its memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.control.estimators.prompt_value_head import PromptValue
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.models.loading.model_names import model_folder
from strop.recipes import build, recipe_named
from strop.success import SURVIVAL
from strop.types import SUCCESS, Group, IntArray, Origin, Sampling, Task
from tests.building import make_group

TASKS = [Arithmetic(level).task(0) for level in (1, 4, 8)]


def opened(model: Path, **fields: float) -> PromptValue:
    estimator = PromptValue(**fields)  # type: ignore[arg-type]
    estimator.load_model(model, 0)
    estimator.meet(Policy.load(model, Scripted(lambda prompt, key: ""), Sampling(), 256))
    return estimator


def seen(task: Task, rewards: list[float], number: int = 0) -> Group:
    group = make_group(rewards, number=number)
    group.task = task
    return group


def last_state(reader: torch.nn.Module, prompt: IntArray) -> Tensor:
    """Of the prompt's last token, with a 1 for the bias: [H + 1]."""
    said = reader(input_ids=torch.from_numpy(prompt).unsqueeze(0), output_hidden_states=True)
    return torch.cat([said.hidden_states[-1][0, -1], torch.ones(1)])


def test_the_first_gradient_by_hand(model: Path, reader: torch.nn.Module) -> None:
    """A head of zeros: d (sigmoid(z) - y)^2 / dz = 2 (1/2 - y) / 4 at each prompt, and the mean over all three."""
    estimator, shares = opened(model), [0.0, 0.25, 1.0]
    assert estimator.predict(TASKS, 0)[0] == pytest.approx([0.5] * 3)
    for number, (task, rewards) in enumerate(zip(TASKS, ([0, 0], [1, 0, 0, 0], [1]), strict=True)):
        estimator.observe(seen(task, [float(reward) for reward in rewards], number))
    with torch.no_grad():
        states = [last_state(reader, estimator._prompt(task)) for task in TASKS]
    gradient = sum((0.5 * (0.5 - y) / 3) * state for y, state in zip(shares, states, strict=True))
    metrics = estimator.learn([])
    assert metrics["estimator_grad_norm"] == pytest.approx(float(torch.as_tensor(gradient).norm()), rel=1e-4)
    assert metrics["estimator_loss"] == pytest.approx((0.25 + 0.0625 + 0.25) / 3)
    assert metrics["estimator_bias"] == pytest.approx(0.5 - 1.25 / 3)
    assert estimator.predict(TASKS, 1)[1] == pytest.approx([metrics["estimator_loss"]] * 3)


def test_a_later_step_by_autograd_through_the_whole_model(model: Path, reader: torch.nn.Module) -> None:
    estimator = opened(model, learning_rate=0.05, max_tokens=40)  # so few that three prompts need several passes
    for share in (1.0, 0.0):
        estimator.observe(seen(TASKS[0], [share]))
        estimator.learn([])
    assert estimator._head is not None
    weights = {name: tensor.detach().clone() for name, tensor in estimator._head.model.parameters.items()}
    reader.get_submodule("model").load_state_dict(
        {name.removeprefix("body."): tensor for name, tensor in weights.items() if name.startswith("body.")}
    )
    head = torch.cat([weights["head.weight"][0], weights["head.bias"]]).requires_grad_()
    values = torch.stack([torch.sigmoid(last_state(reader, estimator._prompt(task)) @ head) for task in TASKS])
    assert estimator.predict(TASKS, 2)[0] == pytest.approx(values.tolist(), abs=1e-5) and abs(values[0] - 0.5) > 0.01
    (values - torch.tensor([1.0, 0.5, 0.0])).square().mean().backward()
    gradients = [head.grad, *(each.grad for each in reader.get_submodule("model").parameters())]
    expected = torch.cat([each.flatten() for each in gradients if each is not None]).norm()
    for number, (task, rewards) in enumerate(zip(TASKS, ([1], [1, 0], [0]), strict=True)):
        estimator.observe(seen(task, [float(reward) for reward in rewards], number))
    assert estimator.learn([])["estimator_grad_norm"] == pytest.approx(float(expected), rel=1e-3)


def test_it_learns_which_prompts_are_solved(model: Path) -> None:
    estimator = opened(model, learning_rate=0.01)
    for _ in range(30):
        for number, share in enumerate((1.0, 0.0, 0.5)):
            estimator.observe(seen(TASKS[number], [share], number))
        metrics = estimator.learn([])
    assert estimator.predict(TASKS, 30)[0] == pytest.approx([1.0, 0.0, 0.5], abs=0.15)
    assert metrics["estimator_loss"] < 0.02


def test_only_outcomes_of_the_policys_own_rollouts_are_labels(model: Path) -> None:
    """1 of 2 own rollouts right, one of them standing for three: 3/4; helped, failed and pruned ones are none."""
    estimator = opened(model)
    group = make_group([0.9, 0.7, 1.0, 1.0, 1.0], failed=[3], pruned=[4])  # shaped sums
    for rollout, outcome in zip(group.rollouts, (1.0, 0.0, 1.0, 1.0, 1.0), strict=True):
        rollout.facts[SUCCESS] = outcome
    group.rollouts[0].facts[SURVIVAL] = 1 / 3
    group.rollouts[2].origin = Origin.GUIDED
    estimator.observe(group)
    estimator.observe(make_group([1.0], failed=[0]))
    assert estimator.state()["seen"] == [[0, estimator._prompt(group.task).tolist(), 0.75]]


def test_groups_that_no_gate_kept_are_learned_once_and_the_draw_itself_is_not(model: Path) -> None:
    estimator, other = opened(model), opened(model)
    estimator.observe(seen(TASKS[0], [1.0]))
    other.observe(seen(TASKS[0], [1.0]))
    assert estimator.learn([]) == other.learn([seen(TASKS[1], [0.0])]) != {}
    assert estimator.learn([]) == {} == other.learn([seen(TASKS[1], [0.0])]), "nothing was tried since"


def test_the_order_in_which_groups_come_changes_no_bit(model: Path) -> None:
    told = []
    for order in ((0, 1, 2), (2, 0, 1)):
        estimator = opened(model, learning_rate=0.05)
        for number in order:
            estimator.observe(seen(TASKS[number], [number / 2], number))
        estimator.learn([])
        told.append(estimator.predict(TASKS, 1)[0])
    assert np.array_equal(told[0], told[1]) and len(set(told[0].tolist())) == 3


def test_it_goes_on_from_a_folder_to_the_same_bits(model: Path, tmp_path: Path) -> None:
    first = opened(model, learning_rate=0.05)
    first.observe(seen(TASKS[0], [1.0]))
    first.learn([])
    first.observe(seen(TASKS[1], [0.0], 1))  # not yet learned when it is saved
    first.save(tmp_path)
    second = opened(model, learning_rate=0.05)
    second.predict(TASKS, 0)  # what it said before it went on is forgotten
    second.resume(tmp_path)
    second.restore(json.loads(json.dumps(first.state())))
    for step in (1, 2):
        one, two = first.predict(TASKS, step), second.predict(TASKS, step)
        assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])
        assert first.learn([]) == second.learn([])


def test_a_prompt_that_is_too_long_is_read_as_far_as_it_fits(model: Path) -> None:
    estimator = opened(model)
    estimator.meet(Policy.load(model, Scripted(lambda prompt, key: ""), Sampling(), 8))
    assert len(estimator._prompt(TASKS[2])) == 7
    assert estimator.predict(TASKS, 0)[0].shape == (3,)


def test_it_says_what_it_misses(model: Path) -> None:
    with pytest.raises(ConfigurationError, match="load_model"):
        PromptValue().predict(TASKS, 0)
    estimator = PromptValue()
    estimator.load_model(model, 0)
    with pytest.raises(ConfigurationError, match="meet"):
        estimator.predict(TASKS, 0)


def test_recipes_tell_easy_envs_from_impossible_ones_after_sixteen_steps_of_eight_tasks() -> None:
    """Half of the tasks are always solved, half never; judged on tasks that it has not seen."""
    (estimator, same), folder = (
        (build(recipe_named(name), {}).estimator for name in ("pcl", "webrl")),
        model_folder("pocket"),
    )
    assert isinstance(estimator, PromptValue) and estimator == same
    estimator.load_model(folder, 0)
    estimator.meet(Policy.load(folder, Scripted(lambda prompt, key: ""), Sampling(), 256))
    for number in range(128):
        is_easy = number % 2 == 0
        task = Arithmetic(1 if is_easy else 8).task(number)
        estimator.observe(replace(make_group([float(is_easy)] * 4, number=number), task=task))
        if number % 8 == 7:
            estimator.learn([])
    easy, hard = (estimator.predict([Arithmetic(level).task(1000 + i) for i in range(8)], 16)[0] for level in (1, 8))
    assert easy.mean() > 0.75 and hard.mean() < 0.25
