"""Rollouts in the page: filters, trees, siblings side by side, and hostile text that stays text."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.models.loading.model_names import POCKET
from strop.observe.report.rollout_page import ReadRollout, conversations, readable
from strop.observe.report.transcripts import Context, Reader, Token, Utterance
from strop.storage.ledger.ledger import Ledger
from strop.types import Group, Message, Task
from tests.observe.dashboard.watching import guest, unlinked
from tests.observe.folders import TOKENIZER, long_turn, rollout, run_folder, turn
from tests.observe.metrics.test_group_tree import tree_and_unused
from tests.observe.report.test_write_report import Tags

TASK = Arithmetic(4).task(0)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)></pre>\"'\x1b]0;title\x07\x00{{7*7}}"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain run with a tree at its end, and a group whose task and completion are hostile or of a megabyte."""
    root = tmp_path_factory.mktemp("runs")
    ledger = Ledger(run_folder(root / "run", steps=30, completion=EVIL).ledger)
    group, unused = tree_and_unused(100)
    ledger.admitted(100, group.task, 30)
    ledger.finished(group, group, "", 30, unused)
    evil = Task((Message("user", EVIL),), EVIL, "<b>source</b>")
    half = replace(turn(EVIL), message=Message("assistant", f"{EVIL}\ud800"))  # a surrogate without its other half
    made = [rollout(evil, "101/0", 1.0, half), rollout(evil, "101/1", 0.0, long_turn(100_000))]
    ledger.admitted(101, evil, 31)
    ledger.finished(Group(101, evil, made, 31), None, "no contrast", 31)
    ledger.close()
    return root


def ids(page: str) -> list[str]:
    return re.findall(r'<tr><td><a href="[^"]*">([^<]*)</a>', page)


def test_pages_follow_each_other(root: Path) -> None:
    client = guest(root)
    page, seen = client.get("/rollouts").text, list[str]()
    while True:
        seen += ids(page)
        found = re.search(r'<a id="next" href="([^"]*)"', page)
        if not found:
            break
        page = client.get(f"/{unescape(found[1])}").text
    # 60 groups of 2, 3 failed ones, a tree of 9, and 2 hostile
    assert len(seen) == len(set(seen)) == 60 * 2 + 3 + 9 + 2 and seen[:2] == ["101/1", "101/0"]


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"fate": "failed"}, 4),
        ({"origin": "branched"}, 3),
        ({"reward_from": "0.5", "reward_to": "0.9"}, 1),
        ({"version_from": "30", "version_to": "30"}, 9),
        ({"kind": "<b>source</b> level 0"}, 2),
        ({"length_from": "5e4"}, 1),
        ({"fate": "nothing"}, 0),
        ({"reward_from": "nonsense", "after": "rubbish", "sort": "rubbish"}, 50),
    ],
)
def test_filters(root: Path, asked: dict[str, str], count: int) -> None:
    assert len(ids(guest(root).get("/rollouts", params=asked).text)) == count


def test_the_tree_of_a_group_leads_to_its_rollouts(root: Path) -> None:
    client = guest(root)
    page = client.get("/rollout", params={"id": "100/3"}).text
    rows = re.findall(r'<b style="padding-left:(\d+)px">(?:└ )?\s*<a href="([^"]*)">([^<]*)</a>', page)
    assert ("16", "100/2") in [(depth, name) for depth, _, name in rows]
    assert ("32", "100/3") in [(depth, name) for depth, _, name in rows]
    assert all(client.get(f"/{unescape(link)}").status_code == 200 for _, link, _ in rows)


def test_a_sibling_stands_beside_it(root: Path) -> None:
    client = guest(root)
    titles = r"<section><h3>([^<]*)</h3>"
    assert re.findall(titles, client.get("/rollout", params={"id": "0/0"}).text) == ["0/0, trained", "0/1, trained"]
    alone = client.get("/rollout", params={"id": "0/0", "beside": "nobody"}).text
    assert re.findall(titles, alone) == ["0/0, trained"]
    other = client.get("/rollout", params={"id": "100/0", "beside": "100/5"}).text
    assert [title.split(",")[0] for title in re.findall(titles, other)] == ["100/0", "100/5"]


@pytest.mark.parametrize("path", ["/rollouts?version_from=31", "/rollout?id=101/0", "/rollout?id=0/1", "/curriculum"])
def test_what_a_model_wrote_stays_text(root: Path, path: str) -> None:
    page = guest(root).get(path).text
    tags = Tags(page)
    assert "<script>alert(1)</script>" in tags.text or path == "/curriculum"
    assert tags.counts["script"] == 2 and "img" not in tags.counts and "49" not in tags.text
    assert not any(code in page for code in ("\x1b", "\x07", "\x00"))


def test_what_takes_a_browser_seconds_is_cut(root: Path) -> None:
    page = guest(root).get("/rollout", params={"id": "101/1", "beside": "nobody"}).text
    assert len(page) < 100_000 and "80,000 more characters" in page
    token = Token("z" * 1_000_000, 0, 0.5, 1.0)
    said = Context("main", (Utterance("assistant", token.text, tokens=(token,)),))
    shown = conversations(
        [("one token", [ReadRollout("3/0", "1", "right", "finished", 1, "a task", [said], "", "", "")])], unlinked
    )
    assert len(shown) < 30_000 and "980,000 more characters" in shown


def test_an_rollout_that_is_not_there(root: Path) -> None:
    answer = guest(root).get("/rollout", params={"id": "7/7'--"})
    assert answer.status_code == 404 and "<nav>" in answer.text and "7/7&#39;--" in answer.text
    part = guest(root).get("/rollout", params={"id": "7/7'--"}, headers={"x-part": "1"})
    assert part.status_code == 404 and part.headers["content-type"].startswith("text/plain")


def test_what_the_model_read_is_shown_with_its_special_tokens() -> None:
    asked = np.array(TOKENIZER.encode("<|user|>1+1=?<|end|>").ids)
    reader, said = Reader.of([POCKET]), rollout(TASK, "0/0", 1.0, turn("2", "<|user|>1+1=?<|end|>"))
    page = conversations([("one", [readable(said, reader, {})])], unlinked)
    assert f"what the model read first, {len(asked)} tokens" in page and "&lt;|user|&gt;1+1=?&lt;|end|&gt;" in page
    assert reader.whole(asked) == "<|user|>1+1=?<|end|>" and reader.text(asked) == "1+1=?"


def test_what_was_put_before_a_completion_is_shown_though_its_tokens_say_nothing() -> None:
    said = Context("main", (Utterance("assistant", "", prefix="x="),))
    shown = conversations(
        [("one", [ReadRollout("3/0", "1", "right", "finished", 1, "a task", [said], "", "", "")])], unlinked
    )
    assert 'class="given" title="given, not trained">x=</span>' in shown
