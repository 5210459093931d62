"""The curriculum that grows is the one that a report reads at once, and runs are compared pair by pair."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.observe.dashboard import live_pass_rates
from strop.observe.dashboard.live_pass_rates import LiveLessons
from strop.observe.metrics.curriculum import curriculum_of
from strop.stats.intervals import paired
from strop.storage.ledger.browser import GroupTried, LedgerBrowser
from strop.storage.ledger.ledger import Ledger
from strop.types import Group
from tests.observe.dashboard.watching import guest
from tests.observe.folders import rollout, run_folder, turn

ENVS = (Arithmetic(2), Arithmetic(4))


def grown(ledger: Ledger) -> Iterator[None]:
    """A run of 30 steps, with a pause after every event: groups run, finish out of order, wait, and are drawn."""
    stream, waiting = random.Random(0), list[Group]()
    for step in range(30):
        groups = [Group(4 * step + i, ENVS[stream.randrange(2)].task(4 * step + i), [], step) for i in range(4)]
        for group in groups:
            ledger.admitted(group.number, group.task, step)
        yield
        for group in stream.sample(groups, 4):
            made = [rollout(group.task, f"{group.number}/{i}", float(stream.random() < 0.5), turn("7")) for i in (0, 1)]
            group.rollouts.extend(made)
            kept = group if stream.random() < 0.7 else None
            ledger.finished(group, kept, "", step)
            ledger._database.commit()
            waiting += [kept] if kept else []
            yield
        drawn, waiting = waiting[:3], waiting[3:]
        ledger.trained(drawn, step + 1)
        yield


def test_it_grows_to_what_a_report_reads_at_once(tmp_path: Path) -> None:
    ledger, live, stream = Ledger(tmp_path / "ledger.db"), LiveLessons(), random.Random(1)
    for _ in grown(ledger):
        if stream.random() < 0.6:
            with LedgerBrowser(tmp_path / "ledger.db") as browser:
                live.look(browser)
    with LedgerBrowser(tmp_path / "ledger.db") as browser:
        cursor = live.look(browser)
        assert live.look(browser) == cursor
    whole = curriculum_of(ledger.offered()).lessons
    assert live.lessons.offered == whole.offered and live.lessons.trained == whole.trained
    assert live.lessons.panels() == whole.panels() and not live.is_behind


def test_no_group_is_read_again_that_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group is read when it is settled, and at most once more, when it is trained."""
    ledger, live, read = Ledger(tmp_path / "ledger.db"), LiveLessons(), list[GroupTried]()
    for _ in grown(ledger):
        with LedgerBrowser(tmp_path / "ledger.db") as browser:
            ask = browser._tried
            monkeypatch.setattr(
                browser, "_tried", lambda *asked, ask=ask: (read.extend(found := ask(*asked)), found)[1]
            )
            live.look(browser)
    settled = [each.number for each in read if each.fate != "running"]
    assert len(set(settled)) == 120 and max(settled.count(number) for number in set(settled)) <= 2


def test_a_long_history_is_caught_up_with_in_several_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_pass_rates, "_AT_ONCE", 10)
    monkeypatch.setattr(live_pass_rates, "_SECONDS", 0.0)
    ledger, live = Ledger(tmp_path / "ledger.db"), LiveLessons()
    for _ in grown(ledger):
        pass
    with LedgerBrowser(tmp_path / "ledger.db") as browser:
        looks = [(live.look(browser), live.is_behind)[1] for _ in range(12)]
    assert looks == [True] * 11 + [False]
    assert live.lessons.offered == curriculum_of(ledger.offered()).lessons.offered


def test_the_page(tmp_path: Path) -> None:
    run_folder(tmp_path / "run", steps=8)
    page = guest(tmp_path).get("/curriculum").text
    assert "Pass rate, trained" in page and "arithmetic level 4" in page


def test_runs_are_compared_by_seed_and_by_task(tmp_path: Path) -> None:
    """Both runs tried the same 24 tasks; in one of them every third pair of rollouts was right both times."""
    for name in ("one", "two"):
        run_folder(tmp_path / name, steps=12)
    ledger = Ledger(tmp_path / "two" / "ledger.db")
    ledger._database.execute("UPDATE rollouts SET reward=1.0 WHERE number % 3 = 0 AND reward IS NOT NULL")
    ledger.close()
    page = guest(tmp_path).get("/compare").text
    found = paired([1.0 if number % 3 == 0 else 0.5 for number in range(24)], [0.5] * 24)
    told = f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
    assert re.search(rf"<td>two</td><td>one</td><td>24</td>\s*<td>{re.escape(told)}", page)
    assert "+0.0%" in page  # the same held-out curve
