"""R3L's advantage and its pivot: numbers by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.errors import ConfigurationError
from strop.recipes.rollout.r3l import AfterPivot, Amplified
from strop.training.comparison_groups import comparison_groups
from strop.types import Group
from tests.building import advantages_of, make_group, turn


def test_as_released_and_as_written() -> None:
    """Mean .375: centred -.375, -.375, .125 and .625."""
    group = make_group([0.0, 0.0, 0.5, 1.0])
    Amplified()([group])
    assert advantages_of(group) == pytest.approx([-0.375, -0.375, 0.375, 1.0])
    Amplified(success=0.0)([group])
    assert advantages_of(group) == pytest.approx([-0.375, -0.375, 0.375, 1.875])


def test_all_right_and_all_wrong() -> None:
    right, wrong = make_group([1.0, 1.0]), make_group([0.0, 0.0])
    Amplified()([right, wrong])
    assert advantages_of(right) == [1.0, 1.0] and advantages_of(wrong) == [0.0, 0.0]
    Amplified(success=0.0)([right])
    assert advantages_of(right) == [0.0, 0.0]


def test_the_baseline_of_a_group_of_one_is_0() -> None:
    groups = [make_group([reward]) for reward in (1.0, 0.5, -0.5)]
    Amplified()(groups)
    assert [advantages_of(group) for group in groups] == [[1.0], [1.5], [-0.5]]


def test_comparison_groups_of_one_do_not_affect_the_others() -> None:
    group = make_group([0.0, 0.5, 1.0])
    group.rollouts[2].comparison_group = "guided 7"
    Amplified()(comparison_groups([group]))
    assert advantages_of(group) == pytest.approx([-0.25, 0.75, 1.0])


def test_what_does_not_count_is_in_no_mean() -> None:
    group = make_group([0.0, 0.5, 9.0, 9.0], failed=[2], pruned=[3])
    Amplified()([group])
    assert advantages_of(group) == [-0.25, 0.75, None, None]


def parted() -> Group:
    """Two rollouts of turns of 3, 2 and 4 tokens; the first parts from another after two of them."""
    group = make_group([0.5, 0.0])
    turns = (turn(3), turn(2), turn(4))
    first, other = (replace(each, turns=turns) for each in group.rollouts)
    first.facts = {"pivot": 2.0}
    return replace(group, rollouts=[first, other])


def test_nothing_before_the_pivot_is_trained() -> None:
    group = parted()
    Amplified()([group])
    first, other = group.rollouts
    assert first.advantages is not None and first.advantages.tolist() == pytest.approx([0.0] * 5 + [0.75] * 4)
    assert other.advantages is not None and other.advantages.tolist() == pytest.approx([-0.25] * 9)
    assert Amplified().learn([group]) == {"before_pivot": pytest.approx(5 / 18), "raised_share": 0.5}


def test_the_mean_is_over_the_tokens_after_it() -> None:
    """4 of the first and 9 of the other."""
    group = parted()
    shares = AfterPivot()([group])
    assert shares["0-0"].tolist() == pytest.approx([0.0] * 5 + [1 / 13] * 4)
    assert shares["0-1"].tolist() == pytest.approx([1 / 13] * 9)
    assert AfterPivot().mass([group]) == 13.0
    assert AfterPivot()([make_group([1.0], failed=[0])]) == {}


@pytest.mark.parametrize(("factor", "success"), [(0.5, 1.0), (3.0, -1.0)])
def test_bad_input_is_refused(factor: float, success: float) -> None:
    with pytest.raises(ConfigurationError, match="Amplified needs factor >= 1 and success >= 0"):
        Amplified(factor, success)
