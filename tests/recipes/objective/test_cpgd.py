from __future__ import annotations

from math import log

import pytest

from strop.errors import ConfigurationError
from strop.recipes.objective.cpgd import Cpgd
from strop.training.losses.reinforce import Reinforce
from tests.building import make_batch, say, written


def run(ratio: float, advantage: float, loss: Cpgd) -> tuple[float, float]:
    """Value and gradient of one token with log behaviour -2."""
    batch, output = make_batch([[-2.0]], [advantage]), say([[-2.0 + log(ratio)]])
    value, _ = loss(output, batch)
    value.sum().backward()
    return written(batch, value)[0], written(batch, output.logprobs.grad)[0]


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "gradient"),
    [
        (1.5, 1.0, -0.1823216, 0.0),
        (1.5, -1.0, 0.4054651, 1.0),
        (0.5, -1.0, -0.2231436, 0.0),
        (1.1, 2.0, -0.1906204, -2.0),
    ],
)
def test_the_log_clip_by_hand(ratio: float, advantage: float, value: float, gradient: float) -> None:
    """Beyond the clip the gradient vanishes, within it there is no ratio in front."""
    assert run(ratio, advantage, Cpgd(drift=0.0)) == pytest.approx((value, gradient))


def test_within_the_clip_it_is_reinforce() -> None:
    batch = make_batch([[-1.0, -2.0], [-0.5]], [1.5, -0.5])
    ours, theirs = say([[-1.1, -1.9], [-0.6]]), say([[-1.1, -1.9], [-0.6]])
    Cpgd(drift=0.0)(ours, batch)[0].sum().backward()
    Reinforce()(theirs, batch)[0].sum().backward()
    assert written(batch, ours.logprobs.grad) == pytest.approx(written(batch, theirs.logprobs.grad))


def test_the_drift_acts_where_the_gain_is_clipped_and_is_capped() -> None:
    assert run(1.5, 1.0, Cpgd())[1] == pytest.approx(0.001 * 0.5)  # pulls down
    assert run(9.0, 1.0, Cpgd())[1] == pytest.approx(0.001 * 2.0)  # r - 1 = 8, capped at 2
    assert run(0.5, -1.0, Cpgd())[1] == pytest.approx(-0.001 * 0.5)  # pulls up


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="0 < clip < 1, got 1"):
        Cpgd(clip=1.0)
