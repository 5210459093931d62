"""Two groups, rollouts of 1, 3 and 4 tokens, and one of 5 that the environment failed."""

from __future__ import annotations

import numpy as np
import pytest

from strop.capabilities import Weighs
from strop.errors import ConfigurationError
from strop.roles import Reduction
from strop.training.reductions.means import ConstantLength, GroupWise, OwnTokenMean, SequenceMean, TokenMean
from strop.types import Group, Origin
from tests.building import make_group


def draw() -> list[Group]:
    return [make_group([1.0, 0.0], [1, 3], number=0), make_group([1.0, 0.0], [5, 4], failed=[0], number=1)]


@pytest.mark.parametrize(
    ("reduction", "shares"),
    [
        (TokenMean(), {"0-0": 1 / 8, "0-1": 1 / 8, "1-1": 1 / 8}),  # 1 + 3 + 4 tokens
        (SequenceMean(), {"0-0": 1 / 3, "0-1": 1 / 9, "1-1": 1 / 12}),  # 3 rollouts
        (ConstantLength(10), {"0-0": 1 / 30, "0-1": 1 / 30, "1-1": 1 / 30}),
        (GroupWise(), {"0-0": 1 / 8, "0-1": 1 / 8, "1-1": 1 / 8}),  # 2 groups of 4 tokens
        (OwnTokenMean(), {"0-0": 1 / 8, "0-1": 1 / 8, "1-1": 1 / 8}),
    ],
)
def test_by_hand(reduction: Reduction, shares: dict[str, float]) -> None:
    lengths = {"0-0": 1, "0-1": 3, "1-1": 4}
    result = reduction(draw())
    assert result.keys() == shares.keys()
    for name, share in shares.items():
        assert result[name].dtype == np.float32
        assert result[name].tolist() == pytest.approx([share] * lengths[name])


@pytest.mark.parametrize(
    ("reduction", "total"), [(TokenMean(), 1.0), (SequenceMean(), 1.0), (ConstantLength(8), 8 / 3 / 8)]
)
def test_what_the_shares_add_up_to(reduction: Reduction, total: float) -> None:
    assert sum(float(share.sum()) for share in reduction(draw()).values()) == pytest.approx(total)


@pytest.mark.parametrize(
    "reduction", [TokenMean(), SequenceMean(), ConstantLength(8), GroupWise(), OwnTokenMean()], ids=repr
)
def test_nothing_written_or_nothing_left(reduction: Reduction) -> None:
    assert reduction([make_group([1.0, 0.0], failed=[0, 1])]) == {}
    result = reduction([make_group([1.0, 0.0], [0, 2])])
    assert len(result["0-0"]) == 0
    assert np.isfinite(result["0-1"]).all()


@pytest.mark.parametrize(
    "reduction", [TokenMean(), SequenceMean(), ConstantLength(8), GroupWise(), OwnTokenMean()], ids=repr
)
def test_a_pruned_rollout_has_no_share_and_thins_nobodys(reduction: Reduction) -> None:
    with_it = reduction([make_group([1.0, 0.0, 0.0], [1, 3, 2], pruned=[2])])
    without = reduction([make_group([1.0, 0.0], [1, 3])])
    assert {name: share.tolist() for name, share in with_it.items()} == {n: s.tolist() for n, s in without.items()}


def test_a_demonstration_has_no_share_and_thins_nobodys() -> None:
    group = make_group([1.0, 0.0, 1.0], [1, 3, 2])
    group.rollouts[2].origin = Origin.TEACHER
    shares = OwnTokenMean()([group])
    assert {name: share.tolist() for name, share in shares.items()} == {
        "0-0": [0.25],
        "0-1": [0.25] * 3,
        "0-2": [0.0, 0.0],
    }
    assert OwnTokenMean().mass([group]) == 4 and TokenMean().mass([group]) == 6
    for rollout in group.rollouts:
        rollout.origin = Origin.TEACHER
    assert not any(share.any() for share in OwnTokenMean()([group]).values())


def test_an_empty_rollout_does_not_thin_the_others() -> None:
    assert SequenceMean()([make_group([1.0, 0.0], [0, 2])])["0-1"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("reduction", [TokenMean(), SequenceMean(), ConstantLength(1), GroupWise(), OwnTokenMean()])
def test_a_single_token_has_the_whole_share(reduction: Reduction) -> None:
    assert reduction([make_group([1.0], [1])])["0-0"].tolist() == [1.0]


def test_groups_count_the_same_and_those_without_a_token_do_not() -> None:
    groups = [make_group([1.0], [1]), make_group([1.0, 0.0], [0, 0], number=1), make_group([1.0], [4], number=2)]
    shares = {name: share.tolist() for name, share in GroupWise()(groups).items()}
    assert shares == {"0-0": [0.5], "1-0": [], "1-1": [], "2-0": [0.125] * 4}


@pytest.mark.parametrize(
    ("reduction", "mass"),
    [(TokenMean(), 8), (SequenceMean(), 3), (ConstantLength(9), 3), (GroupWise(), 2), (OwnTokenMean(), 8)],
    ids=repr,
)
def test_what_a_part_of_a_draw_weighs(reduction: Weighs, mass: float) -> None:
    """Tokens, rollouts or groups that wrote anything."""
    first, second = make_group([1.0, 0.0], [1, 3]), make_group([1.0, 0.0], [0, 4], number=1)
    assert reduction.mass([first, second, make_group([1.0], [0], number=2)]) == mass


def test_refuses_a_length_of_zero() -> None:
    with pytest.raises(ConfigurationError, match="got 0"):
        ConstantLength(0)
