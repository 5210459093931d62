from __future__ import annotations

from math import expm1, log

import pytest

from strop.errors import ConfigurationError
from strop.recipes.objective.archer_dual_token import DualToken
from tests.building import make_batch, say, written

ENTROPY = [0.1, 0.2, 0.3, 0.4, 2.0]  # its 0.8-quantile is 0.4 + 0.2 * 1.6 = 0.72


def test_the_clip_range_depends_on_entropy() -> None:
    # r = 1.4, A = 1: low-entropy tokens stop at 1.2, the high-entropy one does not.
    behavior = [[-2.0] * 5]
    batch = make_batch(behavior, [1.0], reference=[[-2.0 + log(1.4)] * 5])
    output = say([[-2.0 + log(1.4)] * 5], entropy=[ENTROPY])
    value, metrics = DualToken()(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([-1.2] * 4 + [-1.4])
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0] * 4 + [-1.4], abs=1e-12)
    assert metrics["high_share"] == pytest.approx(0.2) and metrics["clipped_share"] == pytest.approx(0.8)


def test_the_lower_clip_bound_depends_on_entropy_too() -> None:
    # r = 0.7, A = -1: low-entropy tokens stop at 0.8, the high-entropy one does not.
    batch = make_batch([[-2.0] * 5], [-1.0], reference=[[-2.0 + log(0.7)] * 5])
    output = say([[-2.0 + log(0.7)] * 5], entropy=[ENTROPY])
    value, _ = DualToken()(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([0.8] * 4 + [0.7])
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0] * 4 + [0.7], abs=1e-12)


def test_the_kl_penalty_is_averaged_over_low_entropy_tokens_only() -> None:
    # k3 with d = 0.5 is expm1(-0.5) + 0.5; 4 of 5 tokens have low entropy, so each counts 5 / 4.
    batch = make_batch([[-2.0] * 5], [0.0], reference=[[-2.5] * 5])
    output = say([[-2.0] * 5], entropy=[ENTROPY])
    value, metrics = DualToken(kl=1.0)(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([1.25 * (expm1(-0.5) + 0.5)] * 4 + [0.0])
    # its derivative is 1 - e^-d
    assert written(batch, output.logprobs.grad) == pytest.approx([-1.25 * expm1(-0.5)] * 4 + [0.0])
    assert metrics["reference_kl"] == pytest.approx(0.5)


def test_each_rollout_has_its_own_quantile_and_ties_are_low() -> None:
    batch = make_batch([[-2.0, -2.0], [-2.0, -2.0]], [0.0, 0.0], reference=[[-2.0, -2.0]] * 2)
    _, metrics = DualToken()(say([[-2.0, -2.0]] * 2, entropy=[[0.0, 0.1], [5.0, 5.0]]), batch)
    assert metrics["high_share"] == pytest.approx(1 / 4)


def test_the_dual_clip_bounds_a_bad_token() -> None:
    batch = make_batch([[-9.0]], [-1.0], reference=[[-9.0]])
    value, _ = DualToken(kl=0.0)(say([[-2.0]], entropy=[[0.0]]), batch)
    assert written(batch, value) == pytest.approx([10.0])
    with pytest.raises(ConfigurationError, match="reference"):
        DualToken()(say([[0.0]]), make_batch([[0.0]]))
