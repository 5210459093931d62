"""Groups as what they were: trees, help, what was given up and why, and what each rollout cost; also in a browser."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.generate.turn_ops import as_prefix, cut
from strop.observe.metrics.group_tree import groups_of, shown_group
from strop.observe.report.group_page import shown
from strop.observe.report.write_report import render, write_report
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Group, Origin, Outcome, Rollout
from tests.observe.dashboard.watching import unlinked
from tests.observe.folders import rollout, run_folder, turn
from tests.observe.report.test_write_report import Tags, browser, sections

TASK = Arithmetic(4).task(0)
EVIL = "<script>alert(1)</script>"


def tree_and_unused(number: int) -> tuple[Group, list[Rollout]]:
    """A root with two branches, one of which has a branch of its own; a hinted one; one given up; a demonstration."""
    root = rollout(TASK, f"{number}/0", 0.0, turn("123456789"))
    two = as_prefix(cut(root.turns, 4))
    more = replace(two[0], tokens=np.arange(5), logprobs=np.zeros(5, np.float32), versions=np.zeros(5, np.int64))
    first = rollout(TASK, f"{number}/2", 1.0, more)
    second = rollout(TASK, f"{number}/10", 0.5, *two)
    grown = [replace(each, origin=Origin.BRANCHED, parent=root.id) for each in (first, second)]
    deep = replace(rollout(TASK, f"{number}/3", 0.0, turn(EVIL)), origin=Origin.BRANCHED, parent=first.id)
    helped = replace(rollout(TASK, f"{number}/4", 1.0, turn("46")), origin=Origin.GUIDED, comparison_group="hinted")
    helped.facts["insights"] = 1.0
    shown_one = replace(rollout(TASK, f"{number}/5", 1.0, turn("46", version=-1)), origin=Origin.TEACHER)
    pruned = replace(rollout(TASK, f"{number}/6", 0.0, turn("4")), outcome=Outcome.PRUNED, rewards={})
    pruned.facts["survival"] = 0.25
    failed = Rollout(f"{number}/7", TASK, (), Outcome.FAILED, error="environment arithmetic: gone")
    unused = replace(rollout(TASK, f"{number}/8", 0.0, turn("12")), outcome=Outcome.PRUNED, rewards={})
    return Group(number, TASK, [*grown, root, deep, helped, shown_one, pruned, failed], version=3), [unused]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A plain run with two such groups at its end, the second left out."""
    folder = run_folder(tmp_path / "run", steps=2)
    ledger = Ledger(folder.ledger)
    for number, reason in ((100, ""), (101, "no contrast")):
        group, unused = tree_and_unused(number)
        ledger.admitted(number, TASK, 3)
        ledger.finished(group, None if reason else group, reason, 3, unused)
        if not reason:
            ledger.trained([group], 4)
    ledger.sync()
    ledger.close()
    return folder


def test_a_group_is_a_tree_with_its_costs_and_reasons(folder: RunFolder) -> None:
    ledger = Ledger(folder.ledger, read_only=True)
    first, second = groups_of(ledger)
    (sampled,) = ledger._rows("SELECT SUM(tokens) FROM rollouts WHERE number=100")[0]
    ledger.close()
    assert (first.number, second.number, first.version, first.reason, second.reason) == (100, 101, 3, "", "no contrast")
    assert [(row.name, row.depth) for row in first.rows] == [
        ("100/0", 0),
        ("100/2", 1),
        ("100/3", 2),
        ("100/10", 1),
        ("100/4", 0),
        ("100/5", 0),
        ("100/6", 0),
        ("100/7", 0),
        ("100/8", 0),
    ]
    rows = {row.name.removeprefix("100/"): row for row in first.rows}
    assert (rows["2"].shared, rows["2"].written, rows["2"].tone, rows["2"].reward) == (4, 5, "right", "1")
    assert rows["2"].words == "branch after 4 shared tokens, 5 tokens, trained"
    assert rows["10"].words == "branch after 4 shared tokens, 0 tokens, trained" and rows["10"].tone == "partly"
    assert rows["4"].words == "with help (hinted), 3 tokens, trained (insights 1)"
    assert rows["5"].words == "demonstrated, 3 tokens that nobody sampled, trained" and rows["5"].sampled == 0
    assert rows["6"].why == "given up midway (survival 0.25)" and (rows["6"].reward, rows["6"].tone) == ("–", "pruned")
    assert rows["7"].why == "failed: environment arithmetic: gone" and rows["7"].tone == "failed"
    assert rows["8"].why == "made on the way and not brought"
    assert sum(row.sampled for row in first.rows) == sampled - rows["5"].written, "what the ledger counts"
    assert first.words.startswith("9 rollouts, ") and "5 of them in rollouts that were given up" in first.words
    assert "8 more were read from a parent" in first.words and second.words.endswith("Left out: no contrast.")
    assert {row.why for row in second.rows if row.name in ("101/0", "101/4")} == {"left out", "left out (insights 1)"}


def test_plain_groups_are_not_shown_and_large_ones_are_cut(tmp_path: Path) -> None:
    plain = run_folder(tmp_path / "plain", steps=2)
    ledger = Ledger(plain.ledger, read_only=True)
    assert groups_of(ledger) == [] and shown([], unlinked) == ""
    ledger.close()
    assert "What groups were made of" not in render(plain)
    many = shown_group(Group(0, TASK, [rollout(TASK, f"0/{n}", 0.0, turn("4")) for n in range(50)]), {})
    assert len(many.rows) == 40 and many.rows[-1].name == "0/39" and "10 more rollouts are not shown" in many.words


def test_the_page_shows_them_and_nothing_a_model_wrote_is_markup(folder: RunFolder) -> None:
    page = render(folder)
    tags = Tags(page)
    assert tags.open == [] and tags.dangers == [] and tags.counts["script"] == 1
    assert (
        sections(page)["summary"].count('<div class="card kin">') == 2
        and sections(page)["summary"].count('<div class="row">') == 18
    )
    assert "<code>&lt;script&gt;alert(1)&lt;/script&gt;</code>" in page
    assert '<b style="padding-left:32px">└ <a>100/3</a></b>' in page
    # 4 shared and 5 written of the longest, the evil completion's 26 with its end token
    longest = max(len(turn(EVIL).tokens), 10)
    assert f'<i class="shared" style="width:{400 / longest:.1f}%"></i>' in page
    assert f'<i class="right" style="width:{500 / longest:.1f}%"></i>' in page


def test_in_a_browser_bars_are_as_long_as_they_say(folder: RunFolder, tmp_path: Path) -> None:
    path = write_report(folder)
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom", path.as_uri()]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "CONSOLE" not in seen.stderr, seen.stderr
    assert sections(seen.stdout)["summary"].count('class="card kin"') == 2
