"""SPEAR's advantage and reduction, by hand."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.replay.spear import CovarianceClip, Recalibrated, SeparateReplayMean
from strop.training.advantages.constant import Constant
from strop.training.advantages.group_relative import GroupMean
from strop.training.reductions.means import ConstantLength
from strop.training.requirements import LOGPROBS
from strop.types import Group
from tests.building import advantages_of, make_group


def group(number: int, rewards: list[float], version: int = 0, times: int = 1) -> Group:
    return replace(make_group(rewards, number=number), version=version, times_trained=times)


def test_the_weight_of_what_is_replayed_rises_along_a_cosine() -> None:
    advantage = Recalibrated(GroupMean(), rise=200)
    found = [advantage.weight(version) for version in (0, 50, 100, 200, 900)]
    assert found == pytest.approx([0.0, 0.1464466, 0.5, 1.0, 1.0])


def test_replayed_rollouts_are_compared_with_the_median_of_new_groups() -> None:
    """New groups have means .2, .4 and .7, the replayed ones count for nothing in it."""
    advantage = Recalibrated(GroupMean(), rise=200)
    new = [group(9, [0.2, 0.2], 100), group(10, [0.8, 0.0], 100), group(11, [0.7, 0.7], 99)]
    again = group(3, [1.0, 0.3, 0.4], 95, times=2)
    advantage([*new, again])
    assert advantages_of(again) == pytest.approx([0.5 * 0.6, 0.0, 0.0]), "w(100) = .5; .3 - .4 is dropped"
    assert advantages_of(new[1]) == pytest.approx([0.4, -0.4]), "the mean of its own group"
    assert advantage.learn([]) == pytest.approx({"replay_weight": 0.5, "replay_baseline": 0.4})


def test_a_group_in_which_no_rollout_counts_has_no_mean() -> None:
    advantage = Recalibrated(GroupMean(), rise=1)
    advantage([group(0, [0.4, 0.4]), make_group([1.0, 1.0], failed=[0, 1], number=1)])
    assert advantage.median == pytest.approx(0.4) and advantage.state() == {"means": pytest.approx([0.4])}


def test_the_median_is_over_earlier_draws_too_and_survives() -> None:
    advantage = Recalibrated(GroupMean(), rise=1)
    advantage([group(0, [0.0, 0.0]), group(1, [0.2, 0.2])])
    other = Recalibrated(GroupMean(), rise=1)
    other.restore(json.loads(json.dumps(advantage.state())))
    for each in (advantage, other):
        again = group(0, [1.0], 0, times=2)
        each([group(2, [0.6, 0.6], 1), again])
        assert advantages_of(again) == pytest.approx([0.8])
    assert advantage.state() == other.state() == {"means": pytest.approx([0.0, 0.2, 0.6])}
    with pytest.raises(ConfigurationError, match="rise >= 1, got 0"):
        Recalibrated(GroupMean(), 0)


def noted(logprobs: list[list[float]], advantage: list[float]) -> Group:
    made = make_group([0.0] * len(advantage), [len(each) for each in logprobs])
    for rollout, own, value in zip(made.rollouts, logprobs, advantage, strict=True):
        rollout.policy_statistics[LOGPROBS.name] = np.array(own, dtype=np.float32)
        rollout.reward = value
    return made


def test_tokens_that_covary_with_their_credit_are_not_pushed() -> None:
    """A = (1, -1): mean 0 over four tokens; log p = (-1, -1, -1, -5): mean -2. Covariances 1, 1, -1, 3."""
    made = noted([[-1.0, -1.0], [-1.0, -5.0]], [1.0, -1.0])
    CovarianceClip(GroupMean(), share=0.02, low=1.5)([made])
    first, second = (each.advantages for each in made.rollouts)
    assert first is not None and first.tolist() == [1.0, 1.0]
    assert second is not None and second.tolist() == [-1.0, 0.0], "at least one, and only where it exceeds 1.5"
    CovarianceClip(GroupMean(), share=0.02, low=3.0)([made])
    assert made.rollouts[1].advantages is not None
    assert made.rollouts[1].advantages.tolist() == [-1.0, -1.0], "3 does not exceed 3"


def test_a_share_of_all_tokens_is_drawn_by_probability() -> None:
    """Ten tokens of mean log p -1.8; four covary by 1.2, five by .8: a share of a quarter is two of the four."""
    seen = Counter[int]()
    for seed in range(400):
        made = noted([[-3.0] * 4 + [-1.0], [-1.0] * 5], [-1.0, 1.0])
        CovarianceClip(GroupMean(), 0.25, 1.0, seed)([made])
        advantage = np.concatenate([each.advantages for each in made.rollouts if each.advantages is not None])
        gone = np.flatnonzero(advantage == 0).tolist()
        assert len(gone) == 2
        seen.update(gone)
    assert set(seen) == {0, 1, 2, 3} and all(abs(count - 200) < 50 for count in seen.values())


def test_the_newest_version_decides_the_draw_whatever_is_trained_on_again() -> None:
    """Beside a group of version 0, versions 1 to 12 choose two of the same four tokens, and not the same two."""
    chosen = set()
    for version in range(1, 13):
        made = noted([[-3.0] * 4 + [-1.0], [-1.0] * 5], [-1.0, 1.0])
        empty = replace(make_group([0.0], [0], number=9), version=0)
        CovarianceClip(GroupMean(), 0.25, 1.0)([empty, replace(made, version=version)])
        advantage = np.concatenate([each.advantages for each in made.rollouts if each.advantages is not None])
        chosen.add(tuple(np.flatnonzero(advantage == 0).tolist()))
    assert len(chosen) > 2 and all(len(each) == 2 for each in chosen)


def test_beyond_forty_and_without_a_share_nothing_is_touched() -> None:
    for covariant in (CovarianceClip(GroupMean(), 0.5), CovarianceClip(GroupMean(), 0.0, 0.0)):
        made = noted([[-100.0], [0.0]], [-1.0, 1.0])  # covariances of 50
        covariant([made])
        assert advantages_of(made) == [-1.0, 1.0]
    CovarianceClip(Constant(), 0.5)([make_group([0.0], [0])])
    for wrong in ({"share": 1.1}, {"low": -1.0}, {"low": 40.0}):
        with pytest.raises(ConfigurationError, match="0 <= share <= 1 and 0 <= low < 40"):
            CovarianceClip(GroupMean(), **wrong)


def test_replayed_groups_are_a_mean_of_their_own() -> None:
    shares = SeparateReplayMean(ConstantLength(10))(
        [group(0, [0.0, 0.0]), group(1, [0.0]), group(2, [0.0, 0.0], times=2)]
    )
    assert {name: share.tolist() for name, share in shares.items()} == {
        **{name: [pytest.approx(1 / 30)] for name in ("0-0", "0-1", "1-0")},
        **{name: [pytest.approx(1 / 20)] for name in ("2-0", "2-1")},
    }
