from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import MOST, WithWritten
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.roles import PassRateEstimator
from strop.stats.task_lineage import child
from strop.types import FloatArray, Group, Task

ENV = Arithmetic(2)
PARENT = ENV.task(0)


def make(share: float, written: int) -> WithWritten:
    sampler = WithWritten(Uniform((ENV,)), share)
    for number in range(written):
        sampler.offer(child(PARENT, f"{number}+1=?", str(number + 1)))
    return sampler


def offered(count: int) -> list[str]:
    return [child(PARENT, f"{number}+1=?", str(number + 1)).id for number in range(count)]


def drawn(sampler: WithWritten, count: int) -> list[str]:
    """`w3` for written task 3, `u` for one of the inner sampler."""
    tasks = [sampler.next(0, Counts()) for _ in range(count)]
    return [f"w{t.messages[0].content.partition('+')[0]}" if "~" in t.id else "u" for t in tasks]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.5, ["u", "w0", "u", "w1", "u", "w2", "u", "u"]),
        (1.0, ["w0", "w1", "w2", "u", "u", "u", "u", "u"]),
        (0.4, ["u", "u", "w0", "u", "w1", "u", "u", "w2"]),  # floor(.4 n) rises at 3, 5, 8
    ],
)
def test_a_share_of_draws_is_written_as_long_as_any_waits(share: float, expected: list[str]) -> None:
    assert drawn(make(share, 3), 8) == expected


def test_a_share_is_a_share_whatever_binary_fractions_say() -> None:
    places = [number for number, each in enumerate(drawn(make(0.1, 10), 100), 1) if each != "u"]
    assert places == list(range(10, 101, 10))
    assert 0.29 * 100 < 29 and drawn(make(0.29, 40), 100)[-1] == "w28"
    halves = WithWritten(Uniform((ENV,)))
    halves.offer(child(PARENT, "0+1=?", "1"))
    assert drawn(halves, 2) == ["u", "w0"]


def test_what_waits_is_bounded_and_the_oldest_is_forgotten() -> None:
    assert drawn(make(1.0, MOST + 3), MOST + 1) == [*(f"w{number}" for number in range(3, MOST + 3)), "u"]


def test_the_same_task_waits_once() -> None:
    sampler = make(1.0, 2)
    sampler.offer(child(PARENT, "0+1=?", "1"))
    assert drawn(sampler, 3) == ["w0", "w1", "u"]
    sampler.offer(child(PARENT, "0+1=?", "1"))
    assert drawn(sampler, 2) == ["w0", "u"], "once tried, it may be offered again"


def test_the_inner_sampler_misses_no_task() -> None:
    sampler = make(0.5, 3)
    found = [task.id for task in (sampler.next(0, Counts()) for _ in range(7)) if "~" not in task.id]
    assert found == [ENV.task(index).id for index in range(4)]


def test_restored_it_gives_the_same_tasks() -> None:
    sampler = make(0.4, 6)
    drawn(sampler, 3)
    other = WithWritten(Uniform((ENV,)), 0.4)
    state = json.loads(json.dumps([sampler.state(), sampler.inner.state()]))  # type: ignore[attr-defined]
    other.restore(state[0])
    other.inner.restore(state[1])  # type: ignore[attr-defined]
    assert drawn(other, 20) == drawn(sampler, 20)
    assert other.state() == sampler.state()


@pytest.mark.parametrize("share", [0.0, 1.1])
def test_shares_that_mean_nothing_are_refused(share: float) -> None:
    with pytest.raises(ConfigurationError, match=r"0 < share <= 1, got"):
        WithWritten(Uniform((ENV,)), share)


@dataclass
class Predicted(PassRateEstimator):
    """Task n is solved with probability n / 10."""

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        means = [int(task.messages[0].content.partition("+")[0]) / 10 for task in tasks]
        return np.array(means, dtype=np.float32), np.zeros(len(means), dtype=np.float32)

    def observe(self, group: Group) -> None:
        pass


def test_what_is_out_of_reach_when_its_turn_comes_is_forgotten() -> None:
    sampler = make(0.5, 10)
    sampler.band = (0.15, 0.75)
    tasks = [sampler.next(0, Predicted()) for _ in range(14)]
    assert [t.messages[0].content for t in tasks if "~" in t.id] == [f"{number}+1=?" for number in range(2, 8)]
    assert sampler.state()["waiting"] == [], "8 and 9 were looked at when nothing else was left"
    unlimited = make(1.0, 11)
    assert len({unlimited.next(0, Predicted()).id for _ in range(11)} & set(offered(11))) == 11, "0 and 1 are within"
    for band in ((0.8, 0.2), (-0.1, 0.5), (0.5, 1.5)):
        with pytest.raises(ConfigurationError, match=r"a band within 0\.\.1, the lower end first"):
            WithWritten(Uniform((ENV,)), 0.5, band)
