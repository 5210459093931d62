"""GAIN-RL: cosines and steps by hand, ranks against plain loops over a small model, and memory."""

from __future__ import annotations

import json
from collections import Counter
from math import exp, sqrt, tanh
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.control.estimators.pass_rate_counts import Counts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.models.layers.prompt_states import states_of
from strop.models.loading.load_weights import read_model
from strop.models.model import load_model
from strop.recipes.select.gain_rl import AngleRanked, between, differing, shared, within
from strop.types import Sampling
from tests.control.samplers.groups import seen

ENVS = (Arithmetic(1), Arithmetic(5))


def opened(model: Path, tasks: int = 6, **fields: float) -> AngleRanked:
    sampler = AngleRanked(ENVS, tasks, **fields)  # type: ignore[arg-type]
    sampler.load_model(model, 0)
    sampler.meet(Policy.load(model, Scripted(lambda prompt, key: ""), Sampling(), 512))
    return sampler


def test_cosines_by_hand() -> None:
    """(1, 0), (0, 2) and (3, 3): 0, 1/sqrt 2, 1/sqrt 2."""
    rows = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    assert within(rows) == pytest.approx(2 / sqrt(2) / 3)
    assert between(rows[:2], rows[2:]) == pytest.approx(1 / sqrt(2)) and between(rows[:1], rows[1:]) == pytest.approx(
        (0 + 1 / sqrt(2)) / 2
    )
    assert within(rows[:1]) == 0 and between(rows, rows[:0]) == 0 and within(torch.ones(4, 3)) == pytest.approx(1)
    assert within(torch.tensor([[1.0, 0.0], [-5.0, 0.0]])) == pytest.approx(-1)


def test_states_are_those_of_each_sequence_alone(model: Path) -> None:
    """Against transformers' own forward pass, one sequence after the other; in passes of few tokens and of many."""
    sequences = [np.array(each) for each in ([5, 6, 7], [5, 6], [9, 8, 7, 6, 5])]
    plain = read_model(model, torch.float32)
    with torch.no_grad():
        wanted = [plain.base_model(torch.tensor([each.tolist()])).last_hidden_state[0] for each in sequences]
    for most in (1, 2, 100):
        found = states_of(load_model(model), sequences, most)
        for one, other in zip(found, wanted, strict=True):
            assert torch.allclose(one, other, atol=1e-4) and one.shape == other.shape


def test_the_common_prefix_of_all_prompts() -> None:
    rows = [np.array(each) for each in ([1, 2, 3, 4], [1, 2, 5, 4], [1, 2, 3])]
    assert shared(rows) == 2 and shared([np.array([7])]) == 0
    assert shared(rows[:1]) == 3, "one token at least is its own"


def test_a_question_is_what_differs_and_one_token_at_least() -> None:
    """`a b` and `a a b` share the prefix a and the suffix a b: nothing would be left."""
    states = torch.arange(6.0)
    assert differing(states, 2, 1).tolist() == [2, 3, 4] and differing(states, 0, 0).tolist() == states.tolist()
    assert differing(states, 2, 4).tolist() == differing(states, 2, 5).tolist() == [2]


def test_ranks_are_those_of_the_score_in_plain_loops(model: Path) -> None:
    sampler = opened(model)
    sampler.next(0, Counts())
    template = Policy.load(model, Scripted(lambda prompt, key: ""), Sampling(), 512).template
    tasks = [env.task(index) for env in ENVS for index in range(6)]
    prompts = [template.opening(task.messages) for task in tasks]
    low = next(i for i in range(99) if len({int(prompt[i]) for prompt in prompts}) > 1)
    high = next(i for i in range(99) if len({int(prompt[-1 - i]) for prompt in prompts}) > 1)
    assert low > 0 and high > 0
    plain, scores = read_model(model, torch.float32), []
    for prompt in prompts:
        with torch.no_grad():
            states = plain.base_model(torch.tensor([prompt.tolist()])).last_hidden_state[0].double()
        cosine = torch.nn.functional.cosine_similarity(states[:, None], states[None], dim=2)
        own = range(low, len(prompt) - high)
        inner = [float(cosine[s, t]) for s in own for t in own if s != t]
        outer = [float(cosine[s, t]) for s in own for t in range(low)]
        scores.append((np.mean(inner) if inner else 0.0) + 8 * np.mean(outer))
    assert sampler.state()["order"] == sorted(range(12), key=lambda place: -scores[place])
    assert sampler.state()["order"] != list(range(12))


def test_the_gaussian_by_hand(model: Path) -> None:
    sampler = opened(model, 2, spread=1.0)
    weights = [exp(-(rank**2) / 2) for rank in range(4)]
    assert sampler.probabilities() == pytest.approx([weight / sum(weights) for weight in weights])
    first = Counter[str]()
    for seed in range(1000):
        each = AngleRanked(ENVS, 2, spread=1.0, seed=seed)
        each.restore(sampler.state() | {"order": [3, 1, 0, 2]})
        first[each.next(0, Counts()).id] += 1
    by_rank = [ENVS[1].task(1), ENVS[0].task(1), ENVS[0].task(0), ENVS[1].task(0)]
    for task, probability in zip(by_rank, sampler.probabilities(), strict=True):
        assert abs(first[task.id] / 1000 - probability) < 4 * sqrt(probability * (1 - probability) / 1000)
    sampler.restore(sampler.state() | {"middle": 1000.0})
    assert sampler.probabilities()[-1] > 0.999, "beyond the list the last ranks come"


@pytest.mark.parametrize(
    ("rate", "closeness", "step"),
    [
        (0.5, 0.0, 0.0),
        (1.0, 0.0, 500 * tanh(1)),
        (0.0, 0.0, 0.0),  # it never goes back
        (0.75, 0.25, 500 * 2 * tanh(0.5)),
        (1.0, 1.0, 500 * (tanh(1) + tanh(2))),
    ],
)
def test_steps_by_hand(rate: float, closeness: float, step: float) -> None:
    """Pass 1, angle 0: 500 tanh(1) = 380.8."""
    sampler = AngleRanked(ENVS, 2, 1000.0, 500.0, 1000.0)
    order = {"order": [0, 1, 2, 3]}
    rows = [[0, 0, 2 * rate, 2, closeness], [0, 1, 4 * rate, 4, closeness]]
    sampler.restore(sampler.state() | order | {"filed": rows})
    sampler.next(1, Counts())
    assert sampler.learn([]) == {"middle_rank": pytest.approx(step)}
    short = AngleRanked(ENVS, 2, 1000.0, 500.0, 100.0)
    short.restore(short.state() | order | {"filed": rows})
    short.next(1, Counts())
    assert short.learn([])["middle_rank"] == pytest.approx(min(step, 100))


def test_rollouts_are_weighted_and_cosines_are_those_of_sampled_tokens(model: Path) -> None:
    sampler = opened(model)
    task = sampler.next(0, Counts())
    group = seen(task, [1.0, 0.0, 0.0, 1.0], failed=[3])
    sampler.observe(group)
    sampler.observe(seen(task, [1.0], 1, failed=[0]))  # no evidence
    ((version, number, right, count, closeness),) = sampler.state()["filed"]
    assert (version, number, right, count, closeness) == (0, 0, 1.0, 3.0, 0.0), "one token has no pair"
    turn = group.rollouts[0].turns[0]
    long = seen(task, [1.0], 2)
    long.rollouts[0].turns = (
        type(turn)(np.array([5, 6]), np.array([7, 8, 9]), np.zeros(3, np.float32), np.zeros(3, int), turn.message),
    )
    sampler.observe(long)
    plain = read_model(model, torch.float32)
    with torch.no_grad():
        states = plain.base_model(torch.tensor([[5, 6, 7, 8, 9]])).last_hidden_state[0][2:]
    cosine = torch.nn.functional.cosine_similarity(states[:, None], states[None], dim=2)
    wanted = float(cosine[0, 1] + cosine[0, 2] + cosine[1, 2]) / 3
    assert sampler.state()["filed"][1][-1] == pytest.approx(wanted, abs=1e-4)
    silent = seen(task, [1.0], 3)
    silent.rollouts[0].turns = ()
    sampler.observe(silent)
    assert sampler.state()["filed"][2][2:] == [1.0, 1.0, 0.0], "an empty rollout has no similarity"


def test_state_is_restored(model: Path) -> None:
    sampler, again = opened(model), opened(model)
    for number in range(3):
        sampler.observe(seen(sampler.next(0, Counts()), [1.0, 1.0], number))
    again.restore(json.loads(json.dumps(sampler.state())))
    steps = (0, 1, 1, 2)
    assert [again.next(step, Counts()) for step in steps] == [sampler.next(step, Counts()) for step in steps]
    assert again.state() == sampler.state() and sampler.learn([])["middle_rank"] > 0


def test_nonsense_is_refused(model: Path) -> None:
    for wrong in ((0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, -1.0)):
        with pytest.raises(ConfigurationError, match=f"got {wrong[0]}, {wrong[1]} and {wrong[2]}"):
            AngleRanked(ENVS, 2, *wrong)
    with pytest.raises(ConfigurationError, match="meet"):
        AngleRanked(ENVS, 2).next(0, Counts())
    sampler = AngleRanked(ENVS, 2)
    sampler.meet(Policy.load(model, Scripted(lambda prompt, key: ""), Sampling(), 512))
    with pytest.raises(ConfigurationError, match="open"):
        sampler.next(0, Counts())
