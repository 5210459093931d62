from __future__ import annotations

from itertools import product

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.rollout.brorl import Broadened, RootOfRollouts
from tests.building import TASK, make_group
from tests.control.samplers.trying import group_of


def test_few_rollouts_before_and_many_after() -> None:
    budget = Broadened()
    assert [budget.rollouts(group_of(TASK, [], version)) for version in (0, 99, 100, 3000)] == [16, 16, 512, 512]
    assert budget.rollouts(group_of(TASK, [0.0], 100)) == 0, "one wave"
    assert budget.size == 16


def test_metrics_of_a_batch() -> None:
    metrics = Broadened(2, 8, 1).learn([make_group([0.0, 1.0, 0.0, 1.0, 1.0, 0.0]), make_group([1.0, 1.0], number=1)])
    assert metrics == {"rollouts_per_group": 4.0, "broadness": 2.0, "mixed_share": 0.5}
    assert Broadened(2, 8, 1).learn([make_group([0.0, 1.0], failed=[1])])["mixed_share"] == 0.0


@pytest.mark.parametrize(("probability", "count"), [(0.3, 1), (0.3, 3), (0.5, 4)])
def test_the_weight_of_unsampled_answers_falls_with_the_number_of_rollouts(probability: float, count: int) -> None:
    """E[p^2 where unsampled] = p^2 (1 - p)^N, over all outcomes of N samples."""
    expected = 0.0
    for outcome in product((True, False), repeat=count):
        weight = 1.0
        for is_it in outcome:
            weight *= probability if is_it else 1 - probability
        expected += weight * (0.0 if any(outcome) else probability**2)
    assert expected == pytest.approx(probability**2 * (1 - probability) ** count)


def test_the_learning_rate_grows_as_the_root_of_the_rollouts() -> None:
    """16 to 512 rollouts of each of 8 tasks: a factor of 32 ** 0.5."""
    scale = RootOfRollouts(16 * 8)
    assert scale(torch.zeros(16 * 8)) == 1.0
    assert scale(torch.full((512 * 8,), -3.0)) == pytest.approx(5.656854, abs=1e-5)
    assert scale(torch.zeros(32)) == 0.5


def test_refuses_nonsense() -> None:
    for size, broad, after in ((0, 8, 1), (8, 4, 1), (8, 16, -1)):
        with pytest.raises(ConfigurationError, match=f"got {size}, {broad} and {after}"):
            Broadened(size, broad, after)
    with pytest.raises(ConfigurationError, match="usual >= 1, got 0"):
        RootOfRollouts(0)
