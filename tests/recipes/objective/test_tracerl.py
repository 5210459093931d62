"""TraceRL's critic: values are read from masked views, returns are learned, and the value clip acts.

Papers: tracerl
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.objective.tracerl import CanvasCritic
from strop.training.views.diffusion_views import InOrder
from strop.types import Group, Outcome
from tests.tiny_models import END, load_reference, save_tiny_model
from tests.training.tiny import make_turn
from tests.training.views.written import filled, filled_turn, group_of

MASK = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("tiny"), "llama")


def opened(folder: Path, **fields: float) -> CanvasCritic:
    critic = CanvasCritic(InOrder(1), **fields)  # type: ignore[arg-type]
    critic.open(folder, 0)
    return critic


def groups_of_completions() -> list[Group]:
    one = filled("one", filled_turn([5, 6], [7, 8, END], [2, 1, 1], behind=1, is_ended=True))
    two = filled("two", filled_turn([5, 6], [9, 10], [1, 2], behind=2))
    failed = filled("failed", filled_turn([5, 6], [9, 10], [1, 2]))
    failed.outcome = Outcome.FAILED
    empty = filled("empty", make_turn([5, 6], []))
    one.reward, two.reward = 1.0, 0.0
    return [group_of(one, failed, two, empty)]


def returning(groups: list[Group]) -> list[Group]:
    for rollout in groups[0].scored:
        rollout.returns = np.full(rollout.num_tokens, rollout.reward, np.float32)
    return groups


def test_values_are_read_at_the_masked_position_of_its_step(folder: Path) -> None:
    critic, reference, groups = opened(folder), load_reference(folder), groups_of_completions()
    critic.predict(groups)
    one, failed, two, empty = groups[0].rollouts
    assert one.values is not None and one.values.tolist() == [0.0] * 3  # the head starts at 0
    assert failed.values is None and empty.values is not None and len(empty.values) == 0

    head = critic._ready()[0].head
    with torch.no_grad():
        head.weight.copy_(torch.linspace(-1, 1, 16).unsqueeze(0))
        head.bias.fill_(0.25)
    critic.predict(groups)
    for rollout, place, canvas in (
        (one, 0, [5, 6, MASK, 8, END, END]),  # positions after EOS are unmasked with it
        (one, 1, [5, 6, MASK, MASK, MASK, MASK]),
        (one, 2, [5, 6, MASK, MASK, MASK, MASK]),
        (two, 1, [5, 6, 9, MASK, MASK, MASK]),
    ):
        nothing_hidden = torch.zeros(1, 1, len(canvas), len(canvas))
        with torch.no_grad():
            states = reference.model(input_ids=torch.tensor([canvas]), attention_mask=nothing_hidden).last_hidden_state
            expected = head(states[0, 2 + place])
        assert rollout.values is not None and float(expected) == pytest.approx(float(rollout.values[place]), abs=1e-4)


def test_it_learns_the_returns(folder: Path) -> None:
    critic, groups = opened(folder, learning_rate=3e-3), returning(groups_of_completions())
    first = last = 0.0
    for step in range(30):
        critic.predict(groups)
        metrics = critic.learn(groups)
        first, last = (metrics["value_loss_first"] if step == 0 else first), metrics["value_loss_last"]
    assert first == pytest.approx(0.5 * 3 / 5)  # three tokens of five lack 1
    assert last < 0.2 * first
    critic.predict(groups)
    values = [
        rollout.values.mean() for rollout in groups[0].scored if rollout.values is not None and rollout.num_tokens
    ]
    assert values[0] > 0.7 and values[1] < 0.3


def test_the_larger_of_two_errors_counts(folder: Path) -> None:
    """A value beyond the clip range, towards its return, is clipped and has no gradient."""
    critic, groups = opened(folder, clip=0.2), returning(groups_of_completions())
    critic.predict(groups)
    head = critic._ready()[0].head
    with torch.no_grad():
        head.bias.fill_(0.5)
    from strop.training.pack import pack

    (batch,) = pack(groups, None, 0, 4096)
    before, returns = np.zeros(5, np.float32), np.array([1, 1, 1, 0, 0], np.float32)
    loss = critic._loss(batch, before, returns, slice(0, 5), [])
    # towards 1: clipped at .2, error .8 and not .5; away from 0: error .5 and not .2
    assert float(loss.detach()) == pytest.approx(0.5 * (3 * 0.64 + 2 * 0.25) / 5)
    loss.backward()
    assert head.bias.grad is not None and float(head.bias.grad) == pytest.approx(2 * 0.5 / 5)


def test_micro_batches_add_up_and_the_last_loss_is_reported(folder: Path) -> None:
    found = []
    for most in (4096, 6):
        critic, groups = (
            opened(folder, learning_rate=1e-2, steps=3, max_tokens=most),
            returning(groups_of_completions()),
        )
        critic.predict(groups)
        found.append(critic.learn(groups))
    assert found[0]["value_loss_last"] < found[0]["value_loss_first"] == pytest.approx(0.5 * 3 / 5)
    assert found[1] == pytest.approx(found[0], rel=1e-3)


def test_a_checkpoint_restores_it(folder: Path, tmp_path: Path) -> None:
    critic, groups = opened(folder, learning_rate=1e-2), returning(groups_of_completions())
    critic.predict(groups)
    critic.learn(groups)
    critic.save(tmp_path)
    critic.predict(groups)
    expected = [rollout.values for rollout in groups[0].scored]
    other = opened(folder, learning_rate=1e-2)
    other.resume(tmp_path)
    other.predict(groups)
    assert all(np.array_equal(a, b) for a, b in zip(expected, [x.values for x in groups[0].scored], strict=True))
    one, two = critic.learn(groups), other.learn(groups)
    assert one == two


def test_misuse_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="no model yet"):
        CanvasCritic(InOrder(1)).predict(groups_of_completions())
    critic = opened(folder)
    groups = groups_of_completions()
    critic.predict(groups)
    with pytest.raises(ConfigurationError, match="returns"):
        critic.learn(groups)
    for fields in ({"steps": 0}, {"clip": 0.0}):
        with pytest.raises(ConfigurationError, match="CanvasCritic needs"):
            CanvasCritic(InOrder(1), **fields)  # type: ignore[arg-type]
