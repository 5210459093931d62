from __future__ import annotations

import pytest

from strop.control.budgets.fixed import Fixed
from strop.errors import ConfigurationError
from tests.building import TASK


def test_is_the_same_for_every_task() -> None:
    budget = Fixed(4)
    assert budget.attempts(TASK) == 4


def test_refuses_nothing() -> None:
    with pytest.raises(ConfigurationError, match="got 0"):
        Fixed(0)
