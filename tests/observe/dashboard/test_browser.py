"""The live page in a real browser: it opens, follows a run, filters, shows trees, and runs nothing that a model wrote.

`make browser` runs it, where Playwright and a Chromium are there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strop.observe.report.write_report import write_report
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Group, Message, Task
from tests.observe.folders import long_turn, rollout, run_folder, turn
from tests.observe.metrics.test_group_tree import tree_and_unused

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

EVIL = (
    "<script>window.pwned=1</script><img src=x onerror=window.pwned=1></pre></code>\x1b[2J\x1b]0;owned\x07\x00{{7*7}}"
)
TRAINED = ["grpo", "steps=5", "groups_per_step=2", "group_size=4", "env=arithmetic:2", "heldout_tasks=4"]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "strop", *words]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a tree, and a group whose task, completion and error are hostile; one completion has a megabyte."""
    root = tmp_path_factory.mktemp("runs")
    ledger = Ledger(run_folder(root / "old", steps=30, completion=EVIL).ledger)
    group, unused = tree_and_unused(100)
    ledger.admitted(100, group.task, 30)
    ledger.finished(group, group, "", 30, unused)
    evil = Task((Message("user", EVIL),), EVIL, "<b>source</b>")
    made = [rollout(evil, "101/0", 1.0, turn(EVIL)), rollout(evil, "101/1", 0.0, long_turn(1_000_000))]
    ledger.admitted(101, evil, 31)
    ledger.finished(Group(101, evil, made, 31), None, EVIL, 31)
    ledger.close()
    return root


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    """Of `strop watch`, as it prints it."""
    server = subprocess.Popen(
        command("watch", str(root), "--port", "0"),
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"STROP_TOKEN": "", "PYTHONUNBUFFERED": "1"},
    )
    assert server.stdout is not None
    yield next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
    server.terminate()
    server.wait()


class Seen:
    """A page, and all that went wrong on it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.wrong: list[str] = []
        self.fetched: list[str] = []
        page.on("dialog", lambda dialog: self.wrong.append(f"dialog {dialog.message}"))
        page.on("pageerror", lambda error: self.wrong.append(f"error {error}"))
        page.on("console", lambda told: self.wrong.append(told.text) if told.type in ("error", "warning") else None)
        page.on("request", lambda request: self.fetched.append(request.url))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[(1200, "light"), (390, "dark")], ids=["desktop", "phone"])
def seen(chromium: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Seen]:
    """Somebody who opened the printed address, at a desk or with a phone; at the end nothing may have gone wrong."""
    width, scheme = request.param
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    seen = Seen(context.new_page())
    seen.page.set_default_timeout(60_000)
    seen.page.goto(address)
    yield seen
    home = address.split("/?")[0]
    seen.page.wait_for_load_state()  # else the width may be that of half a page
    assert seen.wrong == [] and all(url.startswith((home, "data:")) for url in seen.fetched)
    assert seen.page.evaluate("window.pwned") is None
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


def go(seen: Seen, address: str, path: str) -> None:
    seen.page.goto(f"{address.split('?')[0]}{path}")


def test_it_opens_and_the_token_is_not_in_the_address(seen: Seen) -> None:
    assert "token" not in seen.page.url and seen.page.title().endswith("strop")
    seen.page.click("text=old")
    assert seen.page.inner_text("h1") == "old" and seen.page.locator("svg.chart").count() == 3


def test_charts_are_read_out(seen: Seen, address: str) -> None:
    go(seen, address, "curves?run=old")
    chart = seen.page.locator("svg.chart").first
    before = seen.page.locator("output").first.inner_text()
    chart.hover(position={"x": 60, "y": 40})
    assert seen.page.locator("output").first.inner_text() != before
    assert seen.page.locator("figure p").first.inner_text().startswith("step ")


def test_rollouts_are_filtered(seen: Seen, address: str) -> None:
    go(seen, address, "rollouts?run=old")
    assert seen.page.locator("#rollouts tr").count() == 51
    seen.page.select_option("select[name=fate]", "gated")
    seen.page.fill("input[name=reward_to]", "0.5")
    seen.page.click("text=show")
    rows = [each.split() for each in seen.page.locator("#rollouts tr").all_inner_texts()[1:]]
    assert rows and all("gated" in row or "gated," in row for row in rows)
    assert "fate=gated" in seen.page.url


def test_a_tree_is_shown_and_tokens_are_coloured(seen: Seen, address: str) -> None:
    go(seen, address, "rollout?run=old&id=100/2")
    depths = seen.page.eval_on_selector_all(".kin .row b", "all => all.map(b => b.style.paddingLeft)")
    assert sorted(set(depths)) == ["0px", "16px", "32px"]
    token = "document.querySelector('pre i')"
    plain = seen.page.evaluate(f"getComputedStyle({token}).backgroundColor")
    seen.page.check(".by-version")
    assert seen.page.evaluate(f"getComputedStyle({token}).backgroundColor") != plain
    seen.page.click(".kin a >> text=100/3")
    assert seen.page.inner_text("h1") == "Rollout 100/3"


@pytest.mark.parametrize("path", ["rollouts?run=old", "rollout?run=old&id=101/0", "rollout?run=old&id=0/1"])
def test_nothing_that_a_model_wrote_is_run(seen: Seen, address: str, path: str) -> None:
    """A script, an image that fails, terminal codes and a completion of a megabyte: all of it is text."""
    go(seen, address, path)
    text = seen.page.inner_text("main")
    assert "<script>window.pwned=1</script>" in text and "{{7*7}}" in text
    assert "\N{SYMBOL FOR ESCAPE}" in text or "0/1" in path  # tokens, which the pocket model has none of for codes
    assert seen.page.locator("main script, main img").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")], ids=["desktop", "phone"])
def test_the_written_report_is_walked_through_without_a_server(
    root: Path, chromium: Any, width: int, scheme: str
) -> None:
    """All pages from a file, one shown at a time; nothing is fetched, and hostile text stays text."""
    path = write_report(RunFolder(root / "old"))
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True)
    seen = Seen(context.new_page())
    page = seen.page
    page.goto(path.as_uri())
    assert page.locator(".page:visible").count() == 1 and page.inner_text(".page:visible h1") == "old"
    for name in ("curves", "rollouts", "curriculum", "summary", "now"):
        page.click(f"nav a:text-is('{name}')")
        assert page.locator(".page:visible").count() == 1 and page.url.endswith(f"#/{name}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert page.evaluate("scrollY") == 0
    page.click("nav a:text-is('rollouts')")
    page.click("#rollouts a:text-is('101/0')")
    assert page.inner_text(".page:visible h1") == "Rollout 101/0"
    text = page.inner_text(".page:visible")
    assert "<script>window.pwned=1</script>" in text and "{{7*7}}" in text
    token = "document.querySelector('.page:target pre i')"
    plain = page.evaluate(f"getComputedStyle({token}).backgroundColor")
    page.check(".page:visible .by-version")
    assert page.evaluate(f"getComputedStyle({token}).backgroundColor") != plain
    page.go_back()
    assert page.inner_text(".page:visible h1") == "Rollouts"
    assert seen.wrong == [] and page.evaluate("window.pwned") is None
    assert {url.partition("#")[0] for url in seen.fetched if not url.startswith("data:")} == {path.as_uri()}
    context.close()


def test_it_follows_a_run_whose_bits_do_not_change(root: Path, address: str, chromium: Any, tmp_path: Path) -> None:
    """The page is opened before the first step and never loaded again; the same run unwatched leaves the same bits."""
    train = command("train", *TRAINED, "--quiet", "--name", "live")
    run = subprocess.Popen([*train, "--runs", str(root)], stdout=subprocess.DEVNULL)  # ends by itself
    context = chromium.new_context()
    seen = Seen(context.new_page())
    seen.page.set_default_timeout(120_000)
    seen.page.goto(address)
    seen.page.click("td a:text-is('live')")
    for step in (1, 3, 5):
        shown = "step => Number(/step (\\d+) of 5/.exec(document.querySelector('main').innerText)?.[1]) >= step"
        seen.page.wait_for_function(shown, arg=step)
    seen.page.wait_for_selector("text=It is complete.")
    assert seen.wrong == [] and run.wait() == 0
    assert len([url for url in seen.fetched if url.endswith("watch.js")]) == 2  # of the two pages that were opened
    context.close()
    subprocess.run([*train, "--runs", str(tmp_path)], check=True, stdout=subprocess.DEVNULL)
    watched, alone = RunFolder(root / "live"), RunFolder(tmp_path / "live")
    assert watched.metrics.read_bytes() == alone.metrics.read_bytes()
    assert _digest(watched) == _digest(alone)


def _digest(folder: RunFolder) -> str:
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        return ledger.digest()
    finally:
        ledger.close()
