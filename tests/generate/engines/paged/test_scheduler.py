"""Who sits where in the paged engine: slots and pages of keys come back, and nobody overtakes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pytest

from strop.backends import Completion
from strop.generate.engines.paged.block_manager import Pages
from strop.generate.engines.paged.paged_request import Request
from strop.generate.engines.paged.scheduler import Seating
from strop.types import Sampling

Future: TypeAlias = asyncio.Future[Completion]
AHEAD = 100  # tokens: more than any request here may write


@pytest.fixture
def future() -> Iterator[Future]:
    loop = asyncio.new_event_loop()
    yield loop.create_future()
    loop.close()


def request(future: Future, first: int, length: int = 20, limit: int = 30) -> Request:
    """A prompt that begins with `first`; its longest context takes two pages of 16."""
    tokens = np.append(first, np.arange(100, 99 + length))
    nothing = np.zeros(length, np.float32), np.full(length, -1, np.int64)
    return Request(length, tokens, *nothing, Sampling(), first, future, limit)


def test_they_sit_down_in_order_and_a_slot_is_used_again(future: Future) -> None:
    seating = Seating(2, Pages(9), AHEAD)
    first, second, third = requests = [request(future, number) for number in range(3)]
    seating.waiting.extend(requests)
    assert [(seat.slot, seat.start, seat.lacks) for seat in seating.seat(1000)] == [(0, 0, 19), (1, 0, 19)]
    assert list(seating.waiting) == [third] and seating.seat(1000) == []
    seating.leave(first)
    assert not seating.holds(first) and seating.holds(second)
    assert [seat.slot for seat in seating.seat(1000)] == [0] and seating.holds(third)
    for each in (second, third):
        seating.leave(each)
    seating.forget()
    assert not seating and sorted(seating.free) == [0, 1] and seating.pages.num_available == 8


def test_a_pass_takes_only_so_many_tokens_of_prompts(future: Future) -> None:
    seating = Seating(4, Pages(9), AHEAD)
    seating.waiting.extend(request(future, number) for number in range(4))
    assert len(seating.seat(20)) == 2, "19 tokens of the first leave room for another to begin"
    assert len(seating.seat(1000)) == 2


def test_who_finds_no_pages_waits_and_is_not_overtaken(future: Future) -> None:
    seating = Seating(4, Pages(4), AHEAD)  # three pages: one request of two, and one to spare
    large, small = request(future, 1), request(future, 2, 4, 8)
    seating.waiting.extend([request(future, 0), large, small])
    assert [seat.slot for seat in seating.seat(1000)] == [0]
    assert list(seating.waiting) == [large, small], "the small one would fit"


@pytest.mark.parametrize("how", ["whole", "torn", "forgotten"])
def test_keys_are_found_again_where_they_are_whole_and_of_todays_weights(future: Future, how: str) -> None:
    seating = Seating(1, Pages(9), AHEAD)
    first, same = request(future, 7, 40, 80), request(future, 7, 40, 80)
    seating.waiting.append(first)
    (seat,) = seating.seat(1000)
    if how == "forgotten":
        seating.forget()
    written = np.arange(200, 230)
    first.tokens = np.append(first.tokens, written)
    seating.leave(first, is_whole=how != "torn")
    same.tokens = np.concatenate([first.tokens, [5]])  # a later turn
    seating.waiting.append(same)
    (later,) = seating.seat(1000)
    assert seat.start == 0
    # 69 of 70 tokens have keys, which are 4 whole pages; the prompt's own two were named when it sat down
    assert later.start == {"whole": 64, "torn": 32, "forgotten": 0}[how]


def test_those_who_give_up_their_slots_wait_in_front_in_their_order(future: Future) -> None:
    seating = Seating(2, Pages(9), AHEAD)
    first, second, third = requests = [request(future, number) for number in range(3)]
    seating.waiting.extend(requests)
    seating.seat(1000)
    seating.unseat([first, second])
    assert list(seating.waiting) == [first, second, third] and not seating.seated and len(seating.free) == 2


def test_pages_are_taken_as_a_completion_grows(future: Future) -> None:
    seating = Seating(2, Pages(6), 4)  # five pages; each holds room for four tokens more than are known
    first, second = request(future, 0, 14, 64), request(future, 1, 14, 64)
    seating.waiting.extend([first, second])
    assert [len(seat.pages) for seat in seating.seat(1000)] == [2, 2]  # 14 + 4 tokens; their limits would take four
    assert seating.grow() == {}
    first.known = 29  # 33 tokens: a third page, the last one
    before = list(first.pages)
    assert seating.grow() == {first.slot: first.pages} and first.pages[:2] == before and len(first.pages) == 3
    assert seating.grow() == {}, "the device knows of it now"
    second.known = 29
    assert seating.grow() is None
    seating.unseat([first])
    assert seating.waiting[0] is first and seating.grow() == {second.slot: second.pages}
    second.known = 62
    assert len((seating.grow() or {})[second.slot]) == 4, "never more than its limit takes"
