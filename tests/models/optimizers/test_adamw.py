"""The optimizer's two ways: with its norm at hand, and without waiting for it."""

from __future__ import annotations

import pytest
import torch

from strop.models.optimizers.adamw import Optimizer


def made(clip_norm: float | None) -> tuple[Optimizer, torch.nn.Parameter]:
    weight = torch.nn.Parameter(torch.arange(6.0).view(2, 3))
    return Optimizer({"weight": weight}, (0.9, 0.999), 0.1, clip_norm), weight


@pytest.mark.parametrize("clip_norm", [None, 0.5, 100.0])
def test_not_waiting_for_the_norm_changes_nothing(clip_norm: float | None) -> None:
    (waits, one), (goes_on, other) = made(clip_norm), made(clip_norm)
    for scale in (1.0, 0.3, 7.0):
        one.grad, other.grad = (scale * torch.tensor([[1.0, -2, 3], [0.5, 0, -1]]) for _ in range(2))
        waits.step(1e-2, float(waits.gradient_norm()))
        goes_on.step_unless_broken(1e-2, goes_on.gradient_norm(), torch.ones(2))
    torch.testing.assert_close(one, other)
    assert waits.num_steps == goes_on.num_steps == 3
    for name, moment in waits.moments().items():
        torch.testing.assert_close(moment, goes_on.moments()[name])


@pytest.mark.parametrize(("gradient", "loss"), [(float("nan"), 1.0), (float("inf"), 1.0), (1.0, float("nan"))])
def test_what_is_not_finite_moves_nothing(gradient: float, loss: float) -> None:
    optimizer, weight = made(1.0)
    weight.grad = torch.ones(2, 3)
    optimizer.step_unless_broken(1e-2, optimizer.gradient_norm(), torch.ones(1))
    before, moments = weight.clone(), {name: each.clone() for name, each in optimizer.moments().items()}
    weight.grad = torch.full((2, 3), gradient)
    optimizer.step_unless_broken(1e-2, optimizer.gradient_norm(), torch.tensor([1.0, loss]))
    assert torch.equal(weight, before)
    assert all(torch.equal(each, moments[name]) for name, each in optimizer.moments().items())


def test_copies_of_weights_can_tell_that_they_are_old() -> None:
    """The fused kernel alone would not say."""
    optimizer, weight = made(1.0)
    weight.grad = torch.ones(2, 3)
    versions = [weight._version]
    optimizer.step(1e-2, 1.0)
    versions.append(weight._version)
    optimizer.step_unless_broken(1e-2, optimizer.gradient_norm(), torch.ones(1))
    assert versions[0] < versions[1] < weight._version
