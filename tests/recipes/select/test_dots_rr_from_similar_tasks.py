"""Pass-rate estimators that read a task's success off similar ones: attention and a Gaussian process, by hand and on a
model.
"""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from strop.control.estimators.generalist import Generalist, likeness, posterior
from strop.control.estimators.support.prompt_embeddings import PromptStates, standardized
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.recipes.select.dots_rr import ReferenceAttention, attended, fitted
from strop.types import Group, Sampling, Task
from tests.building import make_group

EASY, HARD = ([Arithmetic(level).task(index) for index in range(8)] for level in (1, 6))


def opened(kind: type[ReferenceAttention] | type[Generalist], model: Path) -> ReferenceAttention | Generalist:
    estimator = kind()
    estimator.load_model(model, 0)
    estimator.meet(Policy.load(model, Scripted(lambda prompt, key: ""), Sampling(), 256))
    return estimator


def tried(task: Task, right: int, count: int, number: int, version: int = 0) -> Group:
    made = make_group([1.0] * right + [0.0] * (count - right), number=number)
    made.task, made.version = task, version
    return made


def test_attention_by_hand() -> None:
    """Scores of (2, 0) with (1, 0), (0, 1) and (-1, 0) over sqrt(2): sqrt(2), 0 and -sqrt(2)."""
    known, shares = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), np.array([1.0, 0.5, 0.0])
    weights = [math.exp(math.sqrt(2)), 1.0, math.exp(-math.sqrt(2))]
    expected = (weights[0] + 0.5 * weights[1]) / sum(weights)
    assert attended(np.array([[2.0, 0.0]]), known, shares) == pytest.approx([expected])
    assert attended(np.array([[2e3, 0.0], [-2e3, 0.0]]), known, shares) == pytest.approx([1.0, 0.0]), "no overflow"


def test_where_all_references_agree_everybody_is_predicted_that() -> None:
    stream = np.random.default_rng(0)
    found = attended(stream.normal(size=(5, 4)), stream.normal(size=(7, 4)), np.full(7, 0.3))
    assert found == pytest.approx(np.full(5, 0.3))


def test_a_posterior_of_one_pair_by_hand() -> None:
    """Prior 1/12, noise 1/16 of 4 rollouts: gain (1/12) / (1/12 + 1/16) = 4/7, times the likeness."""
    means, variances = posterior(np.ones((1, 1)), np.array([[1.0], [0.5], [0.0]]), np.array([1.0]), np.array([1 / 16]))
    assert means == pytest.approx([0.5 + 2 / 7, 0.5 + 1 / 7, 0.5])
    assert variances == pytest.approx([(1 - 4 / 7) / 12, (1 - 1 / 7) / 12, 1 / 12])


def test_a_posterior_is_what_conditioning_on_a_grid_gives() -> None:
    """Two pairs and one question: the mean of a normal law of three, summed over a fine grid of its values."""
    law = np.array([[1.0, 0.6, 0.5], [0.6, 1.0, 0.3], [0.5, 0.3, 1.0]]) / 12
    shares, noise = np.array([0.7, 0.2]), np.array([1 / 32, 1 / 8])
    axis, inverse, total, moments = np.linspace(-1.5, 1.5, 61), np.linalg.inv(law), 0.0, np.zeros(2)
    for values in product(axis, repeat=3):
        f = np.array(values)
        weight = math.exp(-0.5 * f @ inverse @ f - 0.5 * (((shares - 0.5 - f[:2]) ** 2) / noise).sum())
        total += weight
        moments += weight * np.array([f[2], f[2] ** 2])
    mean, square = moments / total
    means, variances = posterior(law[:2, :2] * 12, law[2:, :2] * 12, shares, noise)
    assert means == pytest.approx([0.5 + mean], abs=1e-6) and variances == pytest.approx([square - mean**2], abs=1e-6)


def test_relabelling_the_context_turns_the_forecast_round() -> None:
    stream = np.random.default_rng(1)
    known, asked = stream.normal(size=(6, 3)), stream.normal(size=(4, 3))
    shares, noise = stream.random(6), np.full(6, 0.05)
    one, _ = posterior(likeness(known, known), likeness(asked, known), shares, noise)
    two, _ = posterior(likeness(known, known), likeness(asked, known), 1 - shares, noise)
    assert one == pytest.approx(1 - two) and one.std() > 0.01


def test_likeness_in_plain_loops() -> None:
    one, two = np.random.default_rng(2).normal(size=(2, 3, 4))
    expected = [[math.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / 8) for y in two] for x in one]
    assert likeness(one, two) == pytest.approx(np.array(expected))


def test_states_are_those_of_the_first_model_at_the_last_token_of_the_prompt(model: Path) -> None:
    reader = AutoModelForCausalLM.from_pretrained(model, attn_implementation="eager").eval()
    states, prompts = PromptStates.open(model, "cpu"), [np.array([5, 9, 3]), np.array([7])]
    with torch.no_grad():
        for prompt, found in zip(prompts, states.of(prompts), strict=True):
            said = reader(input_ids=torch.from_numpy(prompt).unsqueeze(0), output_hidden_states=True)
            assert found == pytest.approx(said.hidden_states[-1][0, -1].numpy(), abs=1e-5)


def test_features_are_in_units_of_their_deviation_and_constant_ones_say_nothing() -> None:
    known, asked = standardized(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32), np.array([[5.0, 9.0]], np.float32))
    assert known.tolist() == [[-1.0, 0.0], [1.0, 0.0]] and asked.tolist() == [[3.0, 0.0]]


@pytest.mark.parametrize("kind", [ReferenceAttention, Generalist])
def test_tasks_like_solved_ones_are_predicted_more(
    kind: type[ReferenceAttention] | type[Generalist], model: Path
) -> None:
    estimator = opened(kind, model)
    unseen = [EASY[6], HARD[6]]
    means, variances = estimator.predict(unseen, 0)
    assert means.tolist() == [0.5, 0.5] and variances == pytest.approx([1 / 12, 1 / 12])
    for number in range(6):
        estimator.observe(tried(EASY[number], 8, 8, 2 * number))
        estimator.observe(tried(HARD[number], number % 2, 8, 2 * number + 1))
    means, variances = estimator.predict([*unseen, EASY[0], HARD[0]], 1)
    assert means[0] > means[1] + 0.2 and means[2] > means[3] + 0.4
    assert (variances > 0).all() and (variances < 1 / 12).all()
    assert ((means >= 0) & (means <= 1)).all()


@pytest.mark.parametrize("kind", [ReferenceAttention, Generalist])
def test_where_nobody_ever_failed_nothing_breaks(
    kind: type[ReferenceAttention] | type[Generalist], model: Path
) -> None:
    estimator = opened(kind, model)
    for number in range(5):
        estimator.observe(tried(EASY[number], 4, 4, number))
    means, _ = estimator.predict([EASY[0], EASY[7]], 1)
    assert (means > (0.999 if kind is ReferenceAttention else 0.5)).all() and (means <= 1).all()


@pytest.mark.parametrize("kind", [ReferenceAttention, Generalist])
def test_it_goes_on_to_the_same_bits(kind: type[ReferenceAttention] | type[Generalist], model: Path) -> None:
    first, second = opened(kind, model), opened(kind, model)
    for number in range(6):
        first.observe(tried((EASY, HARD)[number % 2][number], number % 4, 4, number, version=number // 2))
    second.restore(json.loads(json.dumps(first.state())))
    for task in (*EASY, *HARD):  # one by one here, together there
        second.predict([task], 3)
    one, two = first.predict([*EASY, *HARD], 3), second.predict([*EASY, *HARD], 3)
    assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1]) and one[0].std() > 0
    assert first.learn([]) == second.learn([])


def test_the_line_by_hand_and_never_downwards() -> None:
    """Predicted .2 .4 .6, came 0 .4 .8: slope 2, height -.4, no error; the other way round the mean of all."""
    predicted, came = np.array([0.2, 0.4, 0.6]), np.array([0.0, 0.4, 0.8])
    assert fitted(predicted, came) == pytest.approx((2.0, -0.4, 0.0))
    assert fitted(predicted, came[::-1]) == pytest.approx((0.0, 0.4, 0.32 / 3))
    assert fitted(np.full(3, 0.3), np.full(3, 0.3)) == pytest.approx((0.0, 0.3, 0.0))


def test_what_cannot_work_is_refused(model: Path) -> None:
    with pytest.raises(ConfigurationError, match="references >= 3"):
        ReferenceAttention(references=2)
    with pytest.raises(ConfigurationError, match="support >= 0"):
        Generalist(support=-1)
    assert (ReferenceAttention(references=3).references, Generalist(support=1).support) == (3, 1)
    for estimator in (ReferenceAttention(), Generalist()):
        with pytest.raises(ConfigurationError, match="load_model"):
            estimator.predict(EASY, 0)
        estimator.load_model(model, 0)
        with pytest.raises(ConfigurationError, match="meet"):
            estimator.observe(tried(EASY[0], 1, 1, 0))
