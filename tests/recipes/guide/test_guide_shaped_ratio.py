"""Guide's shaped ratio: numbers by hand."""

from __future__ import annotations

from math import log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.guide.guide import ShapedRatio
from tests.building import make_batch, say, written


@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_an_empty_hint_weighs_a_half(advantage: float) -> None:
    """Where hint and none agree all ratios are 1, and so is g: the loss is -A / 2, its gradient -A / 4."""
    batch, output = make_batch([[log(0.3), log(0.6)]], [advantage]), say([[log(0.3), log(0.6)]])
    loss, metrics = ShapedRatio()(output, batch)
    loss.sum().backward()
    assert written(batch, loss) == pytest.approx([-advantage / 2] * 2)
    assert written(batch, output.logprobs.grad) == pytest.approx([-advantage / 4] * 2)
    assert metrics == {"ratio": pytest.approx(1.0), "shaped": pytest.approx(0.5)}


def test_the_bound_is_the_quantile_of_the_rollouts_own_ratios() -> None:
    # ratios 0.5, 1, 2, 4, 8 of the first (quantile 0.5: 2), 0.1 of the second
    behavior = [[log(0.1)] * 5, [log(0.5)]]
    said = [[log(0.05), log(0.1), log(0.2), log(0.4), log(0.8)], [log(0.05)]]
    batch, output = make_batch(behavior, [1.0, 3.0]), say(said)
    loss, _ = ShapedRatio(0.5)(output, batch)
    loss.sum().backward()
    shaped = [r / (r + 2) for r in (0.5, 1, 2, 4, 8)]
    assert written(batch, loss) == pytest.approx([*(-value for value in shaped), -3 / 2])
    slopes = [r * 2 / (r + 2) ** 2 for r in (0.5, 1, 2, 4, 8)]
    assert written(batch, output.logprobs.grad) == pytest.approx([*(-value for value in slopes), -3 / 4])


def test_ninety_percent_lie_below_it() -> None:
    # ratios 1 .. 11: the 0.9-quantile is the tenth, 10
    ratios = range(1, 12)
    batch = make_batch([[log(0.01)] * 11])
    loss, _ = ShapedRatio()(say([[log(0.01 * r) for r in ratios]]), batch)
    assert written(batch, loss) == pytest.approx([-r / (r + 10) for r in ratios])


def test_a_bound_of_nothing_is_held() -> None:
    batch = make_batch([[0.0]])
    loss, _ = ShapedRatio(least=1e-4)(say([[-18.0]]), batch)
    ratio = 2.718281828459045**-18.0
    assert written(batch, loss) == pytest.approx([-ratio / (ratio + 1e-4)])


def test_it_does_not_depend_on_who_else_is_in_the_batch() -> None:
    alone = ShapedRatio()(say([[log(0.3), log(0.2)]]), make_batch([[log(0.1), log(0.4)]]))[0]
    beside = ShapedRatio()(say([[log(0.3), log(0.2)], [log(0.9)]]), make_batch([[log(0.1), log(0.4)], [log(0.1)]]))[0]
    torch.testing.assert_close(beside[: len(alone)], alone)


def test_an_rollout_without_tokens_changes_nothing() -> None:
    batch = make_batch([[], [log(0.5)]])
    assert written(batch, ShapedRatio()(say([[], [log(0.5)]]), batch)[0]) == pytest.approx([-0.5])


def test_it_refuses_what_is_no_quantile() -> None:
    with pytest.raises(ConfigurationError, match=r"got 1\.5"):
        ShapedRatio(1.5)
