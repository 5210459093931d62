"""V0.5's numbers by hand: how far a forecast is believed, and when one more rollout pays."""

from __future__ import annotations

import random

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.value.v0_5 import FusedPrior, Prior, WhileRiskFalls
from strop.types import Group, Origin
from tests.building import advantages_of, make_group


def of_signs(forecast: float, mean: float, count: int) -> Prior:
    """The paper's numbers go from -1 to 1."""
    return Prior((forecast + 1) / 2, (mean + 1) / 2, count)


def predicted(rewards: list[float], forecast: float, failed: tuple[int, ...] = ()) -> Group:
    group = make_group(rewards, failed=failed)
    group.predicted = (forecast, 0.1)
    return group


def test_the_papers_numbers() -> None:
    near, far, between = of_signs(0.2, 0.5, 4), of_signs(-0.6, 1.0, 4), of_signs(-0.5, 0.5, 4)
    assert (2 * near.baseline - 1, near.error, near.risk()) == (pytest.approx(0.2), 0.0, 0.0)
    assert 4 * far.error == pytest.approx(2.31) and far.mean_weight == pytest.approx(0.9023, abs=1e-4)
    assert 2 * far.baseline - 1 == pytest.approx(0.844, abs=1e-3)
    assert 4 * (far.risk() - far.risk(1)) == pytest.approx(0.0415, abs=1e-4)
    assert between.mean_weight == pytest.approx(0.75) and 2 * between.baseline - 1 == pytest.approx(0.25)


def test_risk_is_what_its_two_parts_add_up_to() -> None:
    """w^2 / 4k + (1 - w)^2 D, in plain numbers."""
    for forecast, mean, count in [(0.1, 0.9, 3), (0.5, 0.0, 7), (0.9, 0.2, 16)]:
        error = max((mean - forecast) ** 2 - 1 / (4 * count), 0.0)
        for more in (0, 1, 5):
            noise = 1 / (4 * (count + more))
            w = error / (error + noise)
            assert Prior(forecast, mean, count).risk(more) == pytest.approx(w**2 * noise + (1 - w) ** 2 * error)


def test_rollouts_are_made_one_by_one_while_they_pay() -> None:
    budget = WhileRiskFalls(4, 16, 1 / 1024)
    assert budget.rollouts(make_group([])) == 4 == budget.size
    assert budget.rollouts(predicted([1, 1, 1, 1], 0.2)) == 1, "0.0415 / 4 is more than 1 / 1024"
    assert budget.rollouts(predicted([1, 1, 1, 0], 0.6)) == 0, "within what is chance with four rollouts"
    assert budget.rollouts(predicted([1.0] * 16, 0.0)) == 0, "the most"
    assert budget.rollouts(predicted([1.0] * 15, 0.0)) == int(
        4 * (Prior(0, 1, 15).risk() - Prior(0, 1, 15).risk(1)) > 1 / 256
    )
    assert WhileRiskFalls(4, 16, 0.02).rollouts(predicted([1, 1, 1, 1], 0.2)) == 0, "too dear"
    assert budget.rollouts(predicted([0, 0, 0, 0], 0.9, failed=(0, 1, 2, 3))) == 0, "nothing is known of it"
    assert budget.rollouts(make_group([1, 1, 1, 1])) == 0, "nobody predicted anything"


def test_only_own_rollouts_that_count_judge_the_forecast() -> None:
    group = predicted([1, 1, 1, 1, 0, 0], 0.2, failed=(4,))
    group.rollouts[5].origin = Origin.GUIDED
    assert FusedPrior().baseline(group) == pytest.approx(of_signs(-0.6, 1.0, 4).baseline)
    FusedPrior()([group])
    wanted = [1 - 0.921875] * 4 + [None, -0.921875]  # 0.9023 * 1 + 0.0977 * 0.2
    assert advantages_of(group) == [None if want is None else pytest.approx(want, abs=1e-4) for want in wanted]


def test_without_forecast_or_rollouts_the_other_one_decides() -> None:
    assert FusedPrior().baseline(make_group([1, 0, 0, 0])) == 0.25
    assert FusedPrior().baseline(predicted([0, 0], 0.7, failed=(0, 1))) == 0.7
    assert FusedPrior().baseline(make_group([0], failed=[0])) == 0.0


def test_a_good_forecast_makes_a_better_baseline_than_few_rollouts_and_a_bad_one_costs_little() -> None:
    """Mean squared error over 4,000 tasks with 4 rollouts each, rewards by chance."""
    rng, errors = random.Random(0), {"good": [0.0, 0.0], "bad": [0.0, 0.0]}
    for _ in range(4000):
        p = rng.random()
        mean = sum(rng.random() < p for _ in range(4)) / 4
        for name, forecast in (("good", p + rng.gauss(0, 0.05)), ("bad", rng.random())):
            errors[name][0] += (Prior(forecast, mean, 4).baseline - p) ** 2 / 4000
            errors[name][1] += (mean - p) ** 2 / 4000
    assert errors["good"][0] < 0.5 * errors["good"][1]
    assert errors["bad"][0] < 2.5 * errors["bad"][1]


def test_weights_of_the_mean_and_added_rollouts_are_reported() -> None:
    rejected, believed = predicted([1, 1, 1, 1, 1], 0.2), predicted([1, 0, 1, 0], 0.5)
    metrics = FusedPrior().learn([rejected, believed, make_group([1.0])])
    assert metrics == {
        "prior_mean_weight": pytest.approx(Prior(0.2, 1.0, 5).mean_weight / 2),
        "prior_refuted_share": 0.5,
    }
    assert WhileRiskFalls(4, 16).learn([rejected, believed]) == {"rollouts_added": 0.5}
    assert FusedPrior().learn([rejected])["prior_mean_weight"] == pytest.approx(Prior(0.2, 1.0, 5).mean_weight)
    assert FusedPrior().learn([]) == {"prior_mean_weight": 0.0, "prior_refuted_share": 0.0}
    assert np.isfinite(FusedPrior().baseline(predicted([1.0], 1.0)))


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="got 1, 16"):
        WhileRiskFalls(1, 16)
    with pytest.raises(ConfigurationError, match="got 8, 4"):
        WhileRiskFalls(8, 4)
    with pytest.raises(ConfigurationError, match="and 0"):
        WhileRiskFalls(4, 16, 0)
