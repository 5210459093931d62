"""Looking through a ledger: pages without a gap or a double while it grows, filters against a plain loop."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.storage.ledger.browser import ORDERS, Between, LedgerBrowser, Listed, Wanted
from strop.storage.ledger.ledger import Ledger
from strop.types import Group, Origin, Outcome, Rollout
from tests.observe.folders import rollout, turn

ENVS = (Arithmetic(2), Arithmetic(4))


def write(ledger: Ledger, numbers: range) -> None:
    """Groups of 3, two versions apart, of two levels; each tenth rollout failed, each seventh is a branch."""
    for number in numbers:
        stream, task = random.Random(number), ENVS[number % 2].task(number)
        made = [
            rollout(task, f"{number}/{i}", stream.choice([0.0, 0.5, 1.0]), turn("7" * stream.randrange(1, 5)))
            for i in range(3)
        ]
        if number % 10 == 0:
            made[2] = Rollout(f"{number}/2", task, (), Outcome.FAILED, error="gone")
        if number % 7 == 0:
            made[1] = replace(made[1], origin=Origin.BRANCHED, parent=f"{number}/0")
        group = Group(number, task, made, number // 5)
        ledger.admitted(number, task, number // 5)
        ledger.finished(group, group if number % 3 else None, "" if number % 3 else "no contrast", number // 5)
    ledger.trained([ledger.group(n) for n in numbers if n % 6 == 1], numbers[-1] + 1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger.db")
    write(ledger, range(40))
    return ledger


def walk(path: Path, wanted: Wanted, order: str, is_rising: bool, count: int = 7) -> list[Listed]:
    """All pages, one after the other."""
    found, place = list[Listed](), None
    with LedgerBrowser(path) as browser:
        while page := browser.page(wanted, order, is_rising, place, count):
            found, place = [*found, *page], page[-1].place
    return found


def everything(path: Path) -> list[Listed]:
    return walk(path, Wanted(), "newest", True, 1000)


@pytest.mark.parametrize(("order", "is_rising"), list(itertools.product(ORDERS, (False, True))))
def test_pages_are_the_whole_in_its_order(ledger: Ledger, tmp_path: Path, order: str, is_rising: bool) -> None:
    whole = everything(tmp_path / "ledger.db")
    found = walk(tmp_path / "ledger.db", Wanted(), order, is_rising)
    known = [row for row in whole if order != "reward" or row.reward is not None]
    keys = {"newest": lambda r: r.number, "reward": lambda r: r.reward, "length": lambda r: r.tokens}
    expected = sorted(known, key=lambda row: (keys[order](row), row.place.row), reverse=not is_rising)
    assert len(whole) == 120 and [row.id for row in found] == [row.id for row in expected]


@pytest.mark.parametrize("order", ORDERS)
def test_pages_stay_exact_while_rollouts_come_in(ledger: Ledger, tmp_path: Path, order: str) -> None:
    """Between two pages more groups are written: of those there before, none is missed and none comes twice."""
    path, found, place = tmp_path / "ledger.db", list[str](), None
    before = [row.id for row in walk(path, Wanted(), order, False)]
    for turn_of in range(40, 400, 4):
        with LedgerBrowser(path) as browser:
            page = browser.page(Wanted(), order, False, place, 7)
        if not page:
            break
        found, place = [*found, *(row.id for row in page)], page[-1].place
        write(ledger, range(turn_of, turn_of + 4))
    assert len(found) == len(set(found))
    assert [name for name in found if name in set(before)] == before


def kept(wanted: Wanted, row: Listed) -> bool:
    """The same by plain words."""
    plain = [(wanted.task, row.task), (wanted.fate, row.fate), (wanted.origin, row.origin)]
    plain += [(wanted.outcome, row.outcome)]
    spans = [(wanted.reward, row.reward), (wanted.length, row.tokens), (wanted.version, row.version)]
    return (
        all(not asked or asked == own for asked, own in plain)
        and (wanted.kind is None or wanted.kind == (row.source, row.level))
        and all(_is_between(own, *span) for span, own in spans)
    )


def _is_between(value: float | None, low: float | None, high: float | None) -> bool:
    if value is None:
        return low is None and high is None
    return (low is None or value >= low) and (high is None or value <= high)


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(fate="gated"),
        Wanted(fate="trained", origin="branched"),
        Wanted(outcome="failed"),
        Wanted(kind=("arithmetic", 4), reward=Between(0.5, 0.5)),
        Wanted(kind=("arithmetic", 2), version=Between(2, 4)),
        Wanted(length=Between(2, 3)),
        Wanted(version=Between(2, 4), fate="waiting"),
        Wanted(version=Between(None, 0)),
        Wanted(version=Between(99, None)),
        Wanted(task=ENVS[1].task(3).id),
        Wanted(fate="'; DROP TABLE rollouts; --"),
    ],
)
def test_filters_are_what_they_say(ledger: Ledger, tmp_path: Path, wanted: Wanted) -> None:
    whole = everything(tmp_path / "ledger.db")
    expected = [row.id for row in whole if kept(wanted, row)]
    assert [row.id for row in walk(tmp_path / "ledger.db", wanted, "newest", True)] == expected
    assert [row.id for row in walk(tmp_path / "ledger.db", wanted, "newest", False)] == expected[::-1]
    assert sorted(row.id for row in walk(tmp_path / "ledger.db", wanted, "length", False)) == sorted(expected)
    assert len(expected) < len(whole)


def test_questions_about_all_rollouts_read_no_turns(ledger: Ledger, tmp_path: Path) -> None:
    """They walk the index alone: a million rollouts have gigabytes of turns."""
    with LedgerBrowser(tmp_path / "ledger.db") as browser:
        for order, wanted in itertools.product(ORDERS, (Wanted(fate="x"), Wanted(kind=("arithmetic", 4)))):
            plan = explained(browser, wanted, order)
            assert "COVERING INDEX rollouts_by_group" in plan
            # those of one kind: by their groups, not by all rollouts; in the order of groups nothing whole is sorted
            assert ("SEARCH a USING" in plan) == (wanted.kind is not None)
            assert plan.endswith("B-TREE FOR ORDER BY") == (order != "newest")


def explained(browser: LedgerBrowser, wanted: Wanted, order: str) -> str:
    """How the database goes about a page."""
    told, ask = list[str](), browser._rows

    def rows(query: str, values: Sequence[Any] = ()) -> list[Any]:
        told.extend(row[3] for row in ask(f"EXPLAIN QUERY PLAN {query}", values))
        return []

    browser._rows = rows  # type: ignore[method-assign]
    browser.page(wanted, order, False, None, 7)
    browser._rows = ask  # type: ignore[method-assign]
    return "; ".join(told)


def test_a_browser_cannot_write(ledger: Ledger, tmp_path: Path) -> None:
    with (
        LedgerBrowser(tmp_path / "ledger.db") as browser,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        browser._rows("DELETE FROM rollouts")
