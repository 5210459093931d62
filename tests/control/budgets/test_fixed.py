from __future__ import annotations

import pytest

from strop.control.budgets.fixed import Fixed
from strop.errors import ConfigurationError
from tests.building import make_group


def test_is_the_same_for_every_task() -> None:
    budget = Fixed(4)
    assert budget.rollouts(make_group([])) == 4 and budget.rollouts(make_group([1.0])) == 0


def test_refuses_nothing() -> None:
    with pytest.raises(ConfigurationError, match="got 0"):
        Fixed(0)
