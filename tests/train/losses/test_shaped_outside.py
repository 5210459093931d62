"""SCOPE's loss: sampled tokens as ever, an expert's by p / (p + gamma)."""

from __future__ import annotations

from math import log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.train.losses.clip import Clip
from strop.train.losses.shaped_outside import ShapedOutside
from tests.building import make_batch, say, written


def test_by_hand() -> None:
    """A = 2. Sampled: ratio 0.5/0.4 = 1.25, clipped at 1.2: no gradient; 0.44/0.4 = 1.1: -2.2. Outside: p = 0.3 and
    gamma 0.1: -2 * 0.75, gradient -2 * 0.3 * 0.1 / 0.4^2 = -0.375; p = 0.1: -2 * 0.5, gradient -2 / 4."""
    batch = make_batch([[log(0.4), log(0.4), 0.0, 0.0]], [2.0], share=[[1.0] * 4])
    batch.versions = torch.tensor([-1, 0, 0, -1, -1])
    output = say([[log(0.5), log(0.44), log(0.3), log(0.1)]])
    loss, figures = ShapedOutside(Clip(0.2, 0.2))(output, batch)
    assert written(batch, loss) == pytest.approx([-2.4, -2.2, -1.5, -1.0])
    loss.sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0, -2.2, -0.375, -0.5])
    assert figures["outside_share"] == 2.0 and figures["outside"] == pytest.approx(1.25)
    assert figures["clipped_share"] == 1.0 and figures["ratio"] == pytest.approx(2.35), "none of what nobody sampled"


def test_without_others_words_it_is_the_inner_loss() -> None:
    batch = make_batch([[-1.0, -0.5]], [1.0])
    output = say([[-0.9, -0.6]])
    inner = Clip(0.1, 0.1, weight=0.7)
    assert written(batch, ShapedOutside(inner)(output, batch)[0]) == written(batch, inner(output, batch)[0])
    assert ShapedOutside(inner).weight == 0.7


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="gamma > 0"):
        ShapedOutside(Clip(), 0.0)
