from __future__ import annotations

from strop.training.advantages.constant import Constant
from tests.building import advantages_of, make_group


def test_everybody_gets_the_same_but_the_failed() -> None:
    group = make_group([1.0, 0.0, 5.0], failed=[2])
    Constant(0.5)([group])
    assert advantages_of(group) == [0.5, 0.5, None]
