"""XRPO's sharpening by hand."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.select.xrpo import NoveltySharpened
from strop.training.advantages.group_relative import GroupMean
from strop.types import Group
from tests.building import advantages_of, make_group


def sampled(rewards: list[float], likely: list[float], failed: tuple[int, ...] = ()) -> Group:
    """Rollouts of 1, 2, 3 ... tokens with these mean log-probabilities."""
    group = make_group(rewards, list(range(1, len(rewards) + 1)), failed)
    for rollout, mean in zip(group.rollouts, likely, strict=True):
        count = rollout.num_tokens
        uneven = mean + np.linspace(-0.3, 0.3, count) if count > 1 else np.full(1, mean)
        rollout.turns = (replace(rollout.turns[0], logprobs=uneven.astype(np.float32)),)
    return group


def test_the_papers_numbers() -> None:
    """s = -1.2 and -0.8: e = exp(-0.2) = 0.8187, so the bonus is 2.5 * 0.1813 = 0.4532, below the cap of 0.5 A."""
    group = sampled([2.0, 2.0, 0.0, 0.0], [-1.2, -0.8, -1.0, -1.0])  # A = 1, 1, -1, -1
    NoveltySharpened(GroupMean())([group])
    assert advantages_of(group) == pytest.approx([1 + 2.5 * (1 - exp(-0.2)), 1.0, -1.0, -1.0], rel=1e-5)
    assert NoveltySharpened(GroupMean()).learn([group]) == {"sharpened_share": 0.25}
    again = sampled([2.0, 2.0, 0.0, 0.0], [-1.2, -0.8, -1.0, -1.0])
    NoveltySharpened(GroupMean(), 1.0, 1.0)([again])
    assert advantages_of(again) == pytest.approx([1.1813, 1, -1, -1], abs=1e-4)


def test_the_bonus_is_capped_and_wrong_ones_get_none() -> None:
    group = sampled([2.0, 0.0], [-5.0, -1.0])
    NoveltySharpened(GroupMean())([group])
    assert advantages_of(group) == pytest.approx([1.5, -1.0])
    wrong = sampled([0.0, 2.0], [-5.0, -1.0])
    NoveltySharpened(GroupMean())([wrong])
    assert advantages_of(wrong) == pytest.approx([-1.0, 1.0]), "an unlikely wrong one stays, a likely right one too"
    assert NoveltySharpened(GroupMean()).learn([wrong]) == {"sharpened_share": 0.0}


def test_only_scored_rollouts_set_the_mean() -> None:
    group = sampled([2.0, 0.0, 0.0], [-1.2, -0.8, -9.0], failed=(2,))
    NoveltySharpened(GroupMean())([group])
    assert advantages_of(group)[0] == pytest.approx(1 + 2.5 * (1 - exp(-0.2)), rel=1e-5)
    assert advantages_of(group)[2] is None


def test_tokens_that_were_not_sampled_do_not_count() -> None:
    group = sampled([2.0, 0.0], [-1.2, -0.8])
    turn = group.rollouts[1].turns[0]
    group.rollouts[1].turns = (replace(turn, versions=np.array([0, -1])),)  # its first token has -0.8 - 0.3
    NoveltySharpened(GroupMean())([group])
    assert advantages_of(group)[0] == pytest.approx(1 + 2.5 * (1 - exp(-1.2 - (-1.2 - 1.1) / 2)), rel=1e-5)


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="got -1"):
        NoveltySharpened(GroupMean(), -1.0)
    with pytest.raises(ConfigurationError, match=r"and -0\.5"):
        NoveltySharpened(GroupMean(), 1.0, -0.5)
