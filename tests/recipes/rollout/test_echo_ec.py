"""ECHO's clip and shaped advantage, by hand."""

from __future__ import annotations

import math
from math import log

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.rollout.echo_ec.advantage import HybridShaped
from strop.recipes.rollout.echo_ec.loss import ConfidentClip, _is_tail
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.clip import Clip
from strop.training.top_k_stats import confidence, confidences, entropies, likeliest
from tests.building import Said, lay_out, make_batch, make_group, written

EVEN = torch.zeros(1, 10)  # ten tokens equally likely: C = 0.1


def said(logprobs: list[list[float]], logits: torch.Tensor) -> Said:
    leaf = lay_out(logprobs).requires_grad_()
    return Said(leaf, torch.zeros_like(leaf), logits.expand(len(leaf), -1), torch.zeros(len(leaf), dtype=torch.int64))


def test_the_width_by_hand_and_the_gradient_beyond_it() -> None:
    """C = 0.1: e = 0.05 + 0.15 sigmoid(3.6) = 0.196; a ratio of 1.19 still moves, one of 1.21 does not."""
    width = 0.05 + 0.15 / (1 + math.exp(-3.6))
    batch = make_batch([[log(0.5)], [log(0.5)], [log(0.5)]], advantages=[2.0, 2.0, -2.0])
    output = said([[log(0.595)], [log(0.605)], [log(0.605)]], EVEN)
    loss, metrics = ConfidentClip()(output, batch)
    assert metrics["clip_width"] == pytest.approx(width, abs=1e-6) and 0.195 < width < 0.2
    loss.sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-2 * 1.19, 0.0, 2 * 1.21], abs=1e-6)
    assert metrics["clipped_share"] == pytest.approx(1 / 3)


def test_without_sharpness_it_is_a_plain_clip() -> None:
    batch = make_batch([[log(0.5)] * 2, [log(0.4)]], advantages=[1.0, -1.0])
    logprobs = [[log(0.6), log(0.7)], [log(0.3)]]
    loss, _ = ConfidentClip(0.05, 0.2, 0.0)(said(logprobs, EVEN), batch)
    plain, _ = Clip(0.125, 0.125)(said(logprobs, EVEN), batch)
    assert written(batch, loss) == pytest.approx(written(batch, plain))


def test_the_confidence_of_a_completion_is_that_of_its_last_tokens() -> None:
    batch = make_batch([[-1.0] * 18, [-1.0] * 3])
    assert _is_tail(batch).tolist() == [False] * 3 + [True] * 16 + [False] + [True] * 3
    rising = lay_out([[1.0] * 2 + [0.0] * 16, [0.2] * 3])
    widths = ConfidentClip()._widths(rising, batch)
    assert float(widths[5]) == pytest.approx(0.05 + 0.15 / (1 + math.exp(-4.0))), "1 stands before the last 16"
    assert float(widths[-1]) == pytest.approx(0.05 + 0.15 / (1 + math.exp(-3.2)))
    for sure in np.linspace(0, 1, 5):
        width = float(ConfidentClip()._widths(lay_out([[sure] * 18, [sure] * 3]), batch)[5])
        assert 0.125 - 1e-9 <= width < 0.2, "between the middle and the most, whatever C"


def test_what_is_read_from_the_likeliest_tokens() -> None:
    logits = torch.tensor([[0.4, 0.1, 0.2, 0.3]]).log()
    assert likeliest(2, logits, torch.zeros(1)).tolist() == [pytest.approx([0.4, 0.3, 0.0, 3.0])]
    tops = np.array([[0.4, 0.4, 7, 8], [0.9, 0.0, 7, 8]])
    assert entropies(tops).tolist() == pytest.approx([math.log(2), 0.0])
    ten = np.array([[0.3, 0.2, 0.1, 0.1, 0.1, *[0.04] * 5, *range(10)]])
    assert confidences(ten).tolist() == pytest.approx([0.16])
    assert confidence(torch.tensor(ten[:, :10]).log(), torch.zeros(1)).tolist() == pytest.approx([0.16])


def test_the_advantage_is_shaped_by_a_tokens_rank_in_the_batch() -> None:
    """Of two tokens one is uncertain and one certain: z is +1 and -1 in both metrics, S = +-2, factors 1.2 and 0.8."""
    group = make_group([1.0, 0.0])
    torn, sure = [*[0.1] * 10, *range(10)], [0.991, *[0.001] * 9, *range(10)]
    for rollout, row in zip(group.rollouts, (torn, sure), strict=True):
        rollout.policy_statistics["top 10"] = np.array([row])
    shaped = HybridShaped(GroupMean(), 0.1)
    shaped([group])
    found = [float(each.advantages[0]) for each in group.rollouts if each.advantages is not None]
    assert found == pytest.approx([0.5 * 1.2, -0.5 * 0.8], abs=1e-3)
    assert shaped.learn([group])["shaped"] == pytest.approx(0.2, abs=1e-3)
    assert HybridShaped(GroupMean(), 0.1).learn([]) == {"shaped": 0.0}
    shaped([make_group([1.0], lengths=[0])])  # no tokens: nothing to shape


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="0 <= least <= most"):
        ConfidentClip(0.3, 0.2)
