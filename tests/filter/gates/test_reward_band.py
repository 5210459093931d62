from __future__ import annotations

import pytest

from strop.errors import ConfigurationError
from strop.filter.gates.reward_band import RewardBand
from tests.building import make_group


@pytest.mark.parametrize(
    ("rewards", "kept"),
    [([1, 0, 0, 0, 0], True), ([1, 1, 1, 1, 0], True), ([1, 0, 0, 0, 0, 0], False), ([1, 1, 1, 1, 1, 0], False)],
)
def test_from_a_fifth_to_four_fifths(rewards: list[float], kept: bool) -> None:
    assert (RewardBand()(make_group(rewards)).group is not None) == kept


def test_what_the_env_failed_is_in_no_mean() -> None:
    assert RewardBand()(make_group([1, 1, 1, 1, 0], failed=[4])).reason == "its mean reward is above the band"
    assert RewardBand()(make_group([1.0], failed=[0])).reason == "no rollout counts"
    assert RewardBand()(make_group([0.0])).reason == "its mean reward is below the band"


def test_a_band_has_two_ends() -> None:
    with pytest.raises(ConfigurationError, match=r"low <= high, got 0\.9 and 0\.8"):
        RewardBand(low=0.9)
