"""The queue in a small environment of counters: what was admitted at which version is trained at which."""

from __future__ import annotations

import pytest

from strop.control.admission.exact_lag import ExactLag
from strop.control.admission.support.admission_state import Standing
from strop.errors import ConfigurationError


def ages(admission: ExactLag, steps: int) -> list[int]:
    """How many versions old the three groups of each step are, when all finish before a step."""
    waiting: list[int] = []
    seen: list[int] = []
    for step in range(steps):
        while admission.may_start(0, len(waiting), step, 3):
            assert not admission.batch_size(Standing(step, 3, (step,), tuple(waiting), 0))  # one is still written
            waiting.append(step)
        assert admission.batch_size(Standing(step, 3, (), tuple(waiting), 0)) == 3
        drawn, waiting = waiting[:3], waiting[3:]
        assert len(set(drawn)) == 1
        seen.append(step - drawn[0])
    if admission.steps:
        assert not waiting
    return seen


@pytest.mark.parametrize("steps", [0, 7])
def test_every_group_is_exactly_as_old_as_asked(steps: int) -> None:
    assert ages(ExactLag(0, steps), 7) == [0] * 7
    assert ages(ExactLag(2, steps), 7) == [0, 1, 2, 2, 2, 2, 2]
    assert ages(ExactLag(16, steps), 7) == list(range(7))


def test_it_waits_until_the_queue_is_full() -> None:
    admission = ExactLag(1)
    assert not admission.batch_size(Standing(0, 3, (), (0,) * 5, 0))
    assert admission.batch_size(Standing(0, 3, (), (0,) * 6, 0)) == 3


def test_a_negative_lag_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="lag >= 0"):
        ExactLag(-1)
