from __future__ import annotations

import pytest

from strop.control.budgets.fixed import Fixed
from strop.errors import ConfigurationError
from tests.building import TASK, make_group


def test_is_the_same_whatever_is_seen() -> None:
    budget = Fixed(4)
    budget.observe(make_group([0.0]))
    assert budget.attempts(TASK) == 4


def test_refuses_nothing() -> None:
    with pytest.raises(ConfigurationError, match="got 0"):
        Fixed(0)
