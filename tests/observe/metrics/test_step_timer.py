"""Who waits for whom within a step: seconds by a clock that is set by hand."""

from __future__ import annotations

from strop.observe.metrics.step_timer import BusyClock, Laps


class Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_requests_that_overlap_are_counted_once() -> None:
    now = Clock()
    busy = BusyClock(now)
    with busy:  # 100 to 105
        now.at = 102.0
        with busy:
            now.at = 104.0
            assert busy.seconds == 4.0  # while it is open
        now.at = 105.0
    now.at = 109.0
    assert busy.seconds == 5.0
    with busy:  # 109 to 110
        now.at = 110.0
    assert busy.seconds == 6.0


def test_a_step_is_told_by_whom_it_waits_for() -> None:
    """Asked from 101 to 104, and from 108 on; drawn at 106, trained at 109, over at 110."""
    now = Clock()
    busy = BusyClock(now)
    laps = Laps(busy)
    now.at = 101.0
    with busy:
        now.at = 104.0
    now.at = 106.0
    laps.batch_ready()
    now.at = 108.0
    with busy:
        now.at = 109.0
        laps.trained()
        now.at = 110.0
        told = laps.ended()
        now.at = 112.0
        laps.batch_ready()
    assert told == {
        "seconds": 10.0,
        "generate_seconds": 6.0,
        "train_seconds": 3.0,
        "engine_seconds": 5.0,
        "host_seconds": 3.0,
    }
    now.at = 114.0
    laps.trained()
    assert laps.ended() == {
        "seconds": 4.0,
        "generate_seconds": 2.0,
        "train_seconds": 2.0,
        "engine_seconds": 2.0,
        "host_seconds": 0.0,
    }
