"""Sums over siblings (strop.training.arithmetic.siblings): two groups of uneven rollouts, interleaved nowhere."""

from __future__ import annotations

import pytest
import torch

from strop.errors import ConfigurationError
from strop.training.arithmetic.siblings import (
    following,
    group_mean,
    is_right,
    is_taught,
    margins,
    mean_over_pairs,
    num_tokens,
    ordered_pairs,
    per_group,
    sides,
)
from strop.training.batch import Batch
from tests.building import lay_out, make_batch, written

VALUES = torch.tensor([1.0, 2.0, 6.0, 10.0, 30.0], dtype=torch.float64)


def uneven() -> Batch:
    """Three rollouts of one group and two of another, of 2, 1, 3, 1 and 2 tokens."""
    return make_batch(
        [[0.0] * size for size in (2, 1, 3, 1, 2)], groups=[0, 0, 0, 1, 1], rewards=[1.0, 0.0, 1.0, 0.5, 0.2]
    )


def test_sums_and_means_of_a_group() -> None:
    batch = uneven()
    assert per_group(VALUES, batch).tolist() == [9.0, 40.0]
    assert group_mean(VALUES, batch).tolist() == [3.0] * 3 + [20.0] * 2
    some = torch.tensor([True, False, True, False, False])
    assert group_mean(VALUES, batch, some).tolist() == [3.5] * 3 + [0.0] * 2, "0 where there is none"
    assert num_tokens(batch, batch.share).tolist() == [2.0, 1.0, 3.0, 1.0, 2.0]


def test_pairs_of_siblings_and_their_mean() -> None:
    batch = uneven()
    better, worse = ordered_pairs(batch)
    assert list(zip(better.tolist(), worse.tolist(), strict=True)) == [(0, 1), (2, 1), (3, 4)]
    losses = torch.tensor([4.0, 8.0, 5.0], dtype=torch.float64)
    assert mean_over_pairs(losses, (better, worse), batch).tolist() == [6.0] * 3 + [5.0] * 2
    batch.rewards[3:] = 0.5
    pairs = ordered_pairs(batch)
    assert mean_over_pairs(losses[:2], pairs, batch).tolist() == [6.0] * 3 + [0.0] * 2, "ties make no pair"


def test_the_better_side_of_a_pair() -> None:
    batch = make_batch([[0.0]] * 6, groups=[0, 0, 1, 1, 2, 2], rewards=[0.1, 0.9, 0.7, 0.7, 1.0, 0.0])
    assert sides(batch, self_ := object()).tolist() == [-1.0, 1.0, 0.0, 0.0, 1.0, -1.0]
    gains = torch.tensor([1.0, 5.0, 3.0, 9.0, 2.0, 8.0], dtype=torch.float64)
    assert margins(gains, batch, self_).tolist() == [4.0, 0.0, -6.0]
    with pytest.raises(ConfigurationError, match=r"str needs groups of exactly 2 rollouts, got \[2, 3\]"):
        margins(VALUES, uneven(), "owner")


def test_what_follows_within_an_rollout() -> None:
    batch = uneven()
    values = lay_out([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0], [7.0], [8.0, 9.0]], prompt=99.0)
    assert written(batch, following(values, batch)) == [2.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0, 9.0, 0.0]
    assert not following(values, batch)[~batch.trainable].any()


def test_who_is_right_and_who_was_taught() -> None:
    batch = uneven()
    assert is_right(batch, 0.5).tolist() == [True, False, True, True, False]
    assert is_right(batch, 0.5 + 5e-7).tolist() == [True, False, True, True, False], "a rounding error aside"
    assert is_right(batch, 0.5 + 2e-6).tolist() == [True, False, True, False, False]
    assert not is_taught(batch).any(), "prompts bear no version either"
    batch.versions = torch.where(batch.rollouts == 1, -1, batch.versions)
    batch.versions[-1] = -1  # one token of the last one
    assert is_taught(batch).tolist() == [False, True, False, False, True]
