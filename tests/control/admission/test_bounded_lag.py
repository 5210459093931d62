"""The admission rule in a small environment of counters: groups start, finish, are kept or dropped, and are trained
on.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.control.admission.bounded_lag import BoundedLag
from strop.errors import ConfigurationError


@dataclass
class Flow:
    """What the pipeline counts, four groups per step."""

    admission: BoundedLag
    running: int = 0
    waiting: int = 0
    step: int = 0
    started: int = 0

    def start_all(self) -> int:
        """Start whatever may start; returns how many did."""
        before = self.started
        while self.admission.may_start(self.running, self.waiting, self.step, 4):
            self.running += 1
            self.started += 1
        return self.started - before

    def finish(self, count: int = 1, keep: bool = True) -> None:
        assert count <= self.running
        self.running -= count
        self.waiting += count if keep else 0

    def train(self) -> None:
        assert self.waiting >= 4
        self.waiting -= 4
        self.step += 1


def test_lag_one_admits_eight_before_the_first_update() -> None:
    flow = Flow(BoundedLag(lag=1))
    assert flow.start_all() == 8
    flow.finish(8)
    assert flow.start_all() == 0  # finished ones wait: their places are taken
    flow.train()
    assert flow.start_all() == 4  # the 9th to 12th after version 1
    assert flow.started == 12


def test_lag_zero_admits_four_per_version() -> None:
    flow = Flow(BoundedLag())
    for version in range(3):
        assert flow.step == version
        assert flow.start_all() == 4
        flow.finish(4)
        assert flow.start_all() == 0
        flow.train()


def test_a_dropped_group_gives_its_place_back_at_once() -> None:
    flow = Flow(BoundedLag(lag=1))
    flow.start_all()
    flow.finish(keep=False)
    assert flow.start_all() == 1
    assert flow.start_all() == 0


def test_at_lag_zero_replacements_start_together_when_all_are_done() -> None:
    flow = Flow(BoundedLag())
    flow.start_all()
    flow.finish(keep=False)
    assert flow.start_all() == 0  # three are still running
    flow.finish(2)
    flow.finish(keep=False)
    assert flow.start_all() == 2  # both replacements, in one wave
    flow.finish(keep=False)
    assert flow.start_all() == 0
    flow.finish()
    assert flow.start_all() == 1  # a dropped replacement allows exactly one more
    flow.finish()
    assert flow.start_all() == 0
    flow.train()
    assert flow.start_all() == 4


def test_a_run_resumed_in_the_middle_of_a_wave_waits_for_its_end() -> None:
    flow = Flow(BoundedLag(), running=2, waiting=1, started=4)  # one of four was dropped before the crash
    assert flow.start_all() == 0
    flow.finish(2)
    assert flow.start_all() == 1


def test_asking_twice_changes_nothing() -> None:
    admission = BoundedLag()
    assert [admission.may_start(0, 0, 0, 2), admission.may_start(0, 0, 0, 2)] == [True, True]
    assert [admission.may_start(1, 0, 0, 2), admission.may_start(1, 0, 0, 2)] == [True, True]
    assert [admission.may_start(2, 0, 0, 2), admission.may_start(2, 0, 0, 2)] == [False, False]
    assert [admission.may_start(1, 0, 0, 2), admission.may_start(1, 0, 0, 2)] == [False, False]


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.randoms())
def test_waves_at_lag_zero_do_not_depend_on_timing(fates: list[bool], order: object) -> None:
    """Whatever the order in which groups end and the admission is asked, the same groups start together."""

    def waves(shuffle: bool) -> list[list[int]]:
        flow, result, pending = Flow(BoundedLag()), [], list[int]()
        while flow.started < len(fates):
            first = flow.started
            if flow.start_all():
                result.append(list(range(first, flow.started)))
                pending += result[-1]
            if shuffle:
                order.shuffle(pending)  # type: ignore[attr-defined]
            number = pending.pop(0)
            flow.finish(keep=number >= len(fates) or fates[number])
            if flow.waiting == 4:
                flow.train()
        return result

    assert waves(shuffle=True) == waves(shuffle=False)


@given(st.integers(0, 3), st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=80))
def test_lag_is_bounded_and_nothing_gets_stuck(lag: int, ends: list[tuple[int, bool]]) -> None:
    """Training in the order of admission, no group is trained more than `lag` versions after it was admitted."""
    flow, admitted, kept, running = Flow(BoundedLag(lag)), dict[int, int](), list[int](), list[int]()
    for which, keep in ends:
        first = flow.started
        flow.start_all()
        for number in range(first, flow.started):
            admitted[number] = flow.step
            running.append(number)
        assert running  # something runs, or training is possible and was done: never stuck
        number = running.pop(which % len(running))
        flow.finish(keep=keep)
        kept += [number] if keep else []
        while len(kept) >= 4 and all(number > sorted(kept)[3] for number in running):
            kept.sort()
            assert all(flow.step - admitted[number] <= lag for number in kept[:4])
            del kept[:4]
            flow.train()


def test_refuses_a_negative_lag() -> None:
    with pytest.raises(ConfigurationError, match="got -1"):
        BoundedLag(-1)
