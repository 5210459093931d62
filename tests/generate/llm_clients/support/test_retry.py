"""Who is busy is asked again: when exactly, on a virtual clock, and when no more."""

from __future__ import annotations

import asyncio

import pytest

from strop.errors import LLMClientError
from strop.generate.llm_clients.support.retry import LaterError, patiently
from tests.clock import run_virtually


class Asked:
    """Busy so many times, each with a wish or none; notes when it was asked and what time was left."""

    def __init__(self, *wishes: float | None, takes: float = 0.0) -> None:
        self.wishes, self.takes = list(wishes), takes
        self.times: list[float] = []
        self.left: list[float] = []

    async def __call__(self, left: float) -> str:
        self.times.append(asyncio.get_running_loop().time())
        self.left.append(left)
        await asyncio.sleep(self.takes)
        if self.wishes:
            raise LaterError("status 429", self.wishes.pop(0))
        return "so"


def test_pauses_double() -> None:
    asked = Asked(None, None, None)
    assert run_virtually(patiently(asked, 60)) == ("so", 7.0)
    assert asked.times == [0, 1, 3, 7] and asked.left == [60, 59, 57, 53]


def test_whoever_says_when_is_asked_then() -> None:
    asked = Asked(5.0, 0.0, 0.0, None)
    assert run_virtually(patiently(asked, 60))[0] == "so"
    assert asked.times == [0, 5, 5.125, 5.375, 13.375], "at once is a sixteenth of a pause: 2 / 16, 4 / 16, then 8"


@pytest.mark.parametrize(
    ("asked", "seconds", "times", "said"),
    [
        (Asked(*[None] * 99), 10, [0, 1, 3, 7], r"within 10 s, last: status 429; the next try would be after 8 s"),
        (Asked(120.0), 60, [0], r"within 60 s, last: status 429; the next try would be after 120 s"),
        (Asked(None, takes=4), 6, [0, 5], r"within 6 s, last: status 429$"),
        (Asked(takes=7), 6, [0], r"no answer within 6 s$"),
    ],
)
def test_when_time_is_over_it_says_what_was_wrong_last(
    asked: Asked, seconds: float, times: list[float], said: str
) -> None:
    with pytest.raises(LLMClientError, match=said):
        run_virtually(patiently(asked, seconds))
    assert asked.times == times


def test_what_will_not_pass_is_not_asked_again() -> None:
    async def refuses(left: float) -> str:
        raise LLMClientError("status 404")

    with pytest.raises(LLMClientError, match="404"):
        run_virtually(patiently(refuses, 60))
