"""The report: the curves people look for, attempts to read, nothing a model wrote as markup; also in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from strop.disk.folder import RunFolder
from strop.observe.report import render, short, write_report
from strop.observe.transcripts import Utterance, decoder, lines, telling
from strop.types import Message, Task
from tests.observe.folders import attempt, run_folder, turn

EVIL = "<think>1</think><script>alert(1)</script><img src=x onerror=alert(1)></pre>\"'"
TITLES = (
    "Reward",
    "Held-out accuracy",
    "Entropy",
    "Length",
    "KL",
    "Clipped share",
    "Groups without contrast",
    "Tokens per second",
    "Lag",
)


class Tags(HTMLParser):
    """Counts elements and notes attributes that would run or fetch something; checks that elements nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.dangers: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in ("meta", "link"):
            self.open.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (name in ("src", "href") and value != "data:,"):
                self.dangers.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return run_folder(tmp_path / "evil-run", reply=EVIL)


def test_it_has_the_curves_people_look_for(folder: RunFolder) -> None:
    page = render(folder)
    found = re.findall(r"<figcaption><h3>(.*?)</h3>", page)
    assert tuple(found[: len(TITLES)]) == TITLES
    assert "grad_norm" in found
    tags = Tags(page)
    assert tags.counts["svg"] == len(found) and tags.open == []


def test_header_says_what_came_of_it(folder: RunFolder) -> None:
    page = render(folder)
    rows = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    before, after = rows[0]["heldout"], rows[-1]["heldout"]
    assert f"{100 * before:.0f}% →" in page and f'<span class="to">{100 * after:.0f}%</span>' in page
    assert f"{100 * (after - before):+.0f} points" in page
    for part in ("recipe pocket", "seed 0", "arithmetic 4", "complete, step 60 of 60", "0.81 GB", "1.4", "102k"):
        assert part in page


def test_nothing_a_model_wrote_is_markup(folder: RunFolder) -> None:
    page = render(folder)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    tags = Tags(page)
    assert tags.counts["script"] == 1 and "img" not in tags.counts and "b" in tags.counts
    assert tags.dangers == []
    assert "&lt;b&gt;again&lt;/b&gt;" in page  # what the world said, decoded from tokens


def test_nothing_is_fetched(folder: RunFolder) -> None:
    page = render(folder)
    assert "http://" not in page and "https://" not in page
    assert "default-src 'none'" in page


def test_attempts_of_the_first_and_last_step(folder: RunFolder) -> None:
    page = render(folder)
    assert re.findall(r"<section><h3>step (\d+)</h3>", page) == ["1", "60"]
    assert '<span class="think">&lt;think&gt;1&lt;/think&gt;</span>' in page
    assert "reward 1" in page and "reward 0" in page and "right answer" in page


def test_fates_add_up(folder: RunFolder) -> None:
    """120 groups of 2 and 6 failed attempts more; every fourth group is gated."""
    page = render(folder)
    assert "246 attempts in the ledger" in page and "Each has exactly one fate." in page
    for text in ("180 trained", "60 gated", "6 failed"):
        assert text in page


def test_the_recipe_is_there_to_read(folder: RunFolder) -> None:
    assert "The recipe, resolved" in render(folder) and "run = Run(" in render(folder)


def test_what_is_missing_is_left_out(tmp_path: Path) -> None:
    """A run killed before its first step still has a page."""
    folder = RunFolder(tmp_path)
    folder.recipe.write_text("run = Run(recipe='mine', seed=3, steps=7)\n")
    page = render(folder)
    assert "recipe mine" in page and "not measured yet" in page and "<svg" not in page
    folder.metrics.write_text('{"step": 0, "heldout": 0.25}\n{"step": 1, "reward": NaN, "kl": 0.1}\n')
    page = render(folder)
    assert "25%" in page and re.findall(r"<h3>(.*?)</h3>", page) == ["Held-out accuracy", "KL"]


def test_a_report_is_written_where_the_run_is(folder: RunFolder) -> None:
    assert write_report(folder) == folder.report and folder.report.read_text() == render(folder)


def test_a_conversation_is_read_turn_by_turn(tmp_path: Path) -> None:
    task = Task((Message("system", "be brief"), Message("user", "get a")), "4", "keyvalue", 1)
    played = attempt(
        task, "0/0", 1.0, turn("<call>get a</call>"), turn("4", "<|end|><|tool|>a is 4<|end|><|assistant|>")
    )
    nothing = lines(played, decoder([tmp_path]))
    assert nothing[3].text.endswith("tokens)")
    checkpoint = run_folder(tmp_path / "run", steps=1).checkpoints / "step-1"
    assert lines(played, decoder([tmp_path, checkpoint])) == [
        Utterance("system", "be brief"),
        Utterance("user", "get a"),
        Utterance("assistant", "<call>get a</call>"),
        Utterance("world", "a is 4"),
        Utterance("assistant", "4"),
    ]
    spelled = lines(played, lambda tokens: "\nuser\nhigher\nassistant\n")
    assert spelled[3] == Utterance("user", "higher")


def test_telling_attempts_show_the_range() -> None:
    first, second = (Task((Message("user", text),), "", "test") for text in "ab")
    rewards = [(first, 0.0), (first, 1.0), (first, 0.5), (second, 0.0), (second, 0.0)]
    attempts = [attempt(task, str(i), reward, turn("x")) for i, (task, reward) in enumerate(rewards)]
    assert [t.id for t in telling(attempts, 4)] == ["1", "0", "3"]
    assert [t.id for t in telling(attempts, 1)] == ["1"]


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (999, "999"), (1700, "1.7k"), (1_234_567, "1.23M")])
def test_counts_in_short(count: int, text: str) -> None:
    assert short(count) == text


def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return found or pytest.skip("no chromium here")


def test_in_a_browser(folder: RunFolder, tmp_path: Path) -> None:
    """The script runs under its own content policy, every chart is drawn, nothing complains."""
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom", write_report(folder).as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "CONSOLE" not in shown.stderr, shown.stderr
    read_out = re.findall(r"<output>([^<]*)</output>", shown.stdout)
    assert len(read_out) >= len(TITLES) and all(read_out)
    # set by the script alone
    assert shown.stdout.count('style="visibility: hidden;"') == shown.stdout.count("<svg")
    assert all(f"<h3>{title}</h3>" in shown.stdout for title in TITLES)
