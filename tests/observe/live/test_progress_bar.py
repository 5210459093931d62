"""The progress line: what it shows, how long it thinks it takes, and what a log gets instead."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from strop.observe.live.progress_bar import ProgressBar, ShownStanding, clock


def console(is_terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=is_terminal, width=100, color_system=None)


def output(of: Console) -> str:
    assert isinstance(of.file, io.StringIO)
    return of.file.getvalue()


def test_metrics_appear_as_they_become_known() -> None:
    standing = ShownStanding(steps=10)
    assert standing.metrics() == [] and standing.seconds_left is None
    standing.stepped(0, {"heldout": 0.2}, {"seconds": 0.0})
    assert standing.metrics() == [("held-out", "20%")]
    standing.stepped(1, {"reward": 0.5}, {"seconds": 2.0, "tokens_per_second": 1234.5})
    assert standing.metrics() == [("reward", "0.50"), ("held-out", "20%"), ("tok/s", "1,234")]
    standing.stepped(2, {"reward": 1.0, "heldout": 0.35}, {"seconds": 4.0, "tokens_per_second": 1000.0})
    assert standing.metrics() == [("reward", "1.00"), ("held-out", "20% → 35%"), ("tok/s", "1,000")]


def test_time_left_is_that_of_the_steps_so_far() -> None:
    standing = ShownStanding(steps=10)
    for step, seconds in ((1, 2.0), (2, 4.0)):
        standing.stepped(step, {}, {"seconds": seconds})
    assert standing.seconds_left == pytest.approx(8 * 3.0, abs=0.5)
    resumed = ShownStanding(steps=10)
    resumed.stepped(9, {}, {"seconds": 5.0})
    assert resumed.seconds_left == pytest.approx(5.0, abs=0.5)


def test_a_token_budget_may_end_it_sooner() -> None:
    standing = ShownStanding(steps=1000, max_tokens=500)
    standing.stepped(2, {"tokens_generated": 100.0}, {"seconds": 3.0})
    assert standing.seconds_left == pytest.approx(8 * 3.0, abs=0.5)  # 50 tokens a step, 400 to go


def test_a_log_gets_a_few_plain_lines() -> None:
    target = console(is_terminal=False)
    with ProgressBar("grpo", 100, target) as bar:
        for step in range(101):
            metrics = {"heldout": 0.5} if step % 50 == 0 else {}
            bar.stepped(step, metrics | {"reward": 0.25}, {"seconds": 1.0, "tokens_per_second": 10.0})
    rows = output(target).splitlines()
    assert len(rows) == 21
    assert rows[1] == "grpo step 5/100  reward 0.25  held-out 50%  tok/s 10  1:35 left"
    assert rows[-1] == "grpo step 100/100  reward 0.25  held-out 50%  tok/s 10"
    assert "\x1b" not in output(target)


def test_a_terminal_gets_one_line() -> None:
    target = console(is_terminal=True)
    with ProgressBar("grpo", 4, target) as bar:
        for step in range(5):
            bar.stepped(step, {"reward": 0.25, "heldout": 0.1 * step}, {"seconds": 1.0, "tokens_per_second": 10.0})
    last = output(target).split("\r")[-1]
    assert "4/4" in last and "held-out 0% → 40%" in last and "10 tok/s" in last
    assert output(target).count("\n") <= 2


def test_times_on_a_clock() -> None:
    assert [clock(s) for s in (0.4, 65, 3600 * 2 + 184)] == ["0:00", "1:05", "2:03:04"]


def test_rollouts_that_fail_are_told_by_whose_fault() -> None:
    standing = ShownStanding(steps=10)
    standing.stepped(1, {"reward": 1.0, "failed_share": 0.5, "reward_failed_share": 0.375}, {"seconds": 1.0})
    assert standing.metrics() == [("reward", "1.00"), ("reward failed", "38%"), ("environment failed", "12%")]
    standing.stepped(2, {"reward": 1.0, "failed_share": 0.0}, {"seconds": 1.0})
    assert standing.metrics() == [("reward", "1.00")]
