"""The report: the curves people look for, rollouts to read, nothing a model wrote as markup; also in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.observe.dashboard.report_selection import keep
from strop.observe.report.rollout_page import ReadRollout, conversations
from strop.observe.report.svg_charts import short
from strop.observe.report.transcripts import Context, Reader, Utterance, contexts, telling
from strop.observe.report.write_report import render, write_report
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Group, Message, Sampling, Task, ToolCall
from tests.observe.dashboard.watching import guest, unlinked
from tests.observe.folders import TOKENIZER, long_turn, rollout, run_folder, turn

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
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (
                name in ("src", "href") and value != "data:," and not str(value).startswith("#/")
            ):
                self.dangers.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run_folder(tmp_path_factory.mktemp("runs") / "evil-run", completion=EVIL)


@pytest.fixture(scope="module")
def page(folder: RunFolder) -> str:
    return render(folder)


def sections(page: str) -> dict[str, str]:
    """The pages in a file, by their place."""
    return dict(
        re.findall(
            r'<section class="page" id="/([^"]*)">(.*?)</section>\n(?=<section class="page"|<footer>)', page, re.DOTALL
        )
    )


def plain(body: str) -> str:
    """A page without its links and forms."""
    return re.sub(r"\s+", " ", re.sub(r'<form.*?</form>| href="[^"]*"', "", body, flags=re.DOTALL))


def test_its_pages_are_those_of_the_server(folder: RunFolder, page: str) -> None:
    client, written = guest(folder.path.parent), sections(page)
    for name in ("now", "curves", "curriculum", "summary"):
        served = client.get(f"/{name}", params={"all": "1"}, headers={"x-part": "main"}).text
        assert plain(served) == plain(written.pop(name)), name
    assert "Rollouts" in written.pop("rollouts") and len(written) == 20
    for place, body in written.items():
        served = client.get("/rollout", params={"id": unquote(place).removeprefix("rollout/")}, headers={"x-part": "1"})
        assert plain(served.text) == plain(body), place


def test_every_link_leads_somewhere_and_what_is_not_there_is_no_link(page: str) -> None:
    linked, places = set(re.findall(r'href="#/([^"]*)"', page)), set(sections(page))
    assert linked == places and not re.findall(r'href="(?!#/|data:,)', page)
    assert "<a>0/2</a>" in page  # a sibling that is not among those that were kept
    ids = re.findall(r'<\w+ [^>]*\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))


def test_it_says_which_rollouts_it_holds(page: str) -> None:
    """Steps 30 and 60 have one group, as a gate left out the other; 2 of those it left out, 2 that failed."""
    listed = re.findall(r'<tr><td><a href="#/rollout/([^"]*)">', sections(page)["rollouts"])
    assert "20 of 246 rollouts are in this file: of steps 1, 15, 30, 45, 60 the best at a task" in page
    assert sorted(listed) == sorted(
        place.removeprefix("rollout/") for place in sections(page) if place.startswith("rollout/")
    )


def test_long_rollouts_leave_room_for_fewer(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", steps=1)
    ledger, task = Ledger(folder.ledger), Arithmetic(4).task(99)
    for number in range(10, 16):
        group = Group(number, task, [rollout(task, f"{number}/0", 1.0, long_turn(14_000))], 1)
        ledger.admitted(number, task, 1)
        ledger.finished(group, group, "", 1)
        ledger.trained([group], number)
    ledger.close()
    kept = keep(folder)
    assert [name for name in kept.ids if name.endswith("/0") and int(name[:-2]) >= 10] == ["15/0", "10/0"]
    assert f"{len(kept.ids)} of 11 rollouts" in kept.words


def test_it_has_the_curves_people_look_for(page: str) -> None:
    found = re.findall(r"<figcaption><h3>(.*?)</h3>", sections(page)["curves"])
    assert tuple(found[: len(TITLES)]) == TITLES
    assert "grad_norm" in found
    assert Tags(page).open == []


def test_the_first_page_says_what_came_of_it(folder: RunFolder, page: str) -> None:
    rows = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    before, after = rows[0]["heldout"], rows[-1]["heldout"]
    assert next(iter(sections(page))) == "now"
    assert f"{100 * before:.0f}% →" in page and f'<span class="to">{100 * after:.0f}%</span>' in page
    assert f"{100 * (after - before):+.0f} points" in page
    for part in ("pocket", "seed 0", "arithmetic 4", "It is complete.", "step 60 of 60", "0.81 GB", "1.4", "102k"):
        assert part in sections(page)["now"]


def test_nothing_a_model_wrote_is_markup(page: str) -> None:
    tags = Tags(page)
    assert "<script>alert(1)</script><img src=x onerror=alert(1)>" in tags.text, "to read"
    assert tags.counts["script"] == 1 and "img" not in tags.counts and "b" in tags.counts
    assert tags.dangers == []
    assert "&lt;b&gt;again&lt;/b&gt;" in page  # what the environment said, decoded from tokens


def test_nothing_is_fetched(page: str) -> None:
    assert "http://" not in page and "https://" not in page
    assert "default-src 'none'" in page


def test_rollouts_are_there_to_read(page: str) -> None:
    assert len(re.findall(r'<i class="left v0 think"[^>]*>(?:&lt;think&gt;|1|&lt;/think&gt;)</i>', page)) >= 3
    assert "reward 1" in page and "reward 0" in page and "right answer" in page


def test_fates_add_up(page: str) -> None:
    """120 groups of 2 and 6 failed rollouts more; every fourth group is gated."""
    assert "246 rollouts in the ledger" in page and "Each has exactly one fate." in page
    for text in ("180 trained", "60 gated", "6 failed"):
        assert text in page


def test_the_recipe_is_there_to_read(page: str) -> None:
    assert "The recipe, resolved" in page and "run = Run(" in page


def test_what_is_missing_is_left_out(tmp_path: Path) -> None:
    """A run killed before its first step still has a page."""
    folder = RunFolder(tmp_path)
    folder.recipe.write_text("run = Run(recipe='mine', seed=3, steps=7)\n")
    page = render(folder)
    assert ">mine</p>" in page and "not measured yet" in page and "<svg" not in page
    folder.metrics.write_text('{"step": 0, "heldout": 0.25}\n{"step": 1, "reward": NaN, "kl": 0.1}\n')
    page = render(folder)
    assert "25%" in page and re.findall(r"<h3>(.*?)</h3>", sections(page)["curves"]) == ["Held-out accuracy", "KL"]


def test_a_report_is_written_where_the_run_is(folder: RunFolder) -> None:
    assert write_report(folder) == folder.report and folder.report.read_text() == render(folder)


def test_a_conversation_is_read_turn_by_turn(tmp_path: Path) -> None:
    task = Task((Message("system", "be brief"), Message("user", "get a")), "4", "keyvalue", 1)
    played = rollout(
        task, "0/0", 1.0, turn("<call>get a</call>"), turn("4", "<|end|><|tool|>a is 4<|end|><|assistant|>")
    )
    (nothing,) = contexts(played, Reader.of([tmp_path]))
    assert nothing.said[3].text.endswith("tokens)") and nothing.said[2] == Utterance("assistant", "<call>get a</call>")
    checkpoint = run_folder(tmp_path / "run", steps=1).checkpoints / "step-1"
    (read,) = contexts(played, Reader.of([tmp_path, checkpoint]))
    assert read.name == "main" and [(each.role, each.text) for each in read.said] == [
        ("system", "be brief"),
        ("user", "get a"),
        ("assistant", "<call>get a</call>"),
        ("env", "a is 4"),
        ("assistant", "4"),
    ]
    assert "".join(token.text for token in read.said[2].tokens) == "<call>get a</call>"


def test_templates_that_write_roles_as_words_are_read(tmp_path: Path) -> None:
    task = Task((Message("user", "?"),), "4", "keyvalue", 1)
    played = rollout(task, "0/0", 1.0, turn("5"), turn("7", "\nuser\nhigher\nassistant\n"))
    reader = Reader.of([run_folder(tmp_path / "run", steps=1).checkpoints / "step-1"])
    assert contexts(played, reader)[0].said[2] == Utterance("user", "higher")


def test_contexts_stand_apart_and_tokens_say_what_is_known_of_them(tmp_path: Path) -> None:
    """A sub-agent, then the main conversation, which was told something and whose completion has a given beginning."""
    task = Task((Message("user", "?"),), "4", "keyvalue", 1)
    aside = replace(turn("ab", "look"), sampling=Sampling(policy_name="finder"), fresh=True)
    told = (Message("tool", "red is 4"), Message("assistant", "", (ToolCall("get", '{"key": "red"}'),)))
    given = TOKENIZER.encode("x=").ids
    main = replace(turn("4", version=3), prompt=np.array(given), num_prefix=len(given), told=told, fresh=True)
    played = rollout(task, "0/0", 1.0, aside, main)
    played.advantages = np.array([0.5, -1, 0, 2, 0], np.float32)  # a, b, end; 4, end
    played.ratios = np.array([np.nan, 0.75, 1, 8, 1], np.float32)
    reader = Reader.of([run_folder(tmp_path / "run", steps=1).checkpoints / "step-1"])
    found = contexts(played, reader)
    assert [each.name for each in found] == ["finder", "context 2"]
    assert found[0].said[0] == Utterance("env", "look")
    assert [(t.text, t.advantage, t.version) for t in found[0].said[1].tokens] == [("a", 0.5, 0), ("b", -1, 0)]
    tool, call, completion = found[1].said
    assert (tool.role, tool.text) == ("tool", "red is 4") and call.text == 'get({"key": "red"})'
    assert completion.prefix == "x=" and [(t.text, t.advantage, t.version) for t in completion.tokens] == [("4", 2, 3)]
    assert completion.tokens[0].probability == pytest.approx(np.exp(-0.5))
    page = conversations(
        [("step 1", [ReadRollout("3/0", "1", "right", "finished", 5, "a task", found, "4", "", "")])], unlinked
    )
    assert page.count('<details class="context"') == 2 and "finder" in page and 'class="given"' in page
    assert (
        'style="--c:0.5;--p:0.39;--r:25%" title="advantage -1, ratio 0.75, probability 0.607, version 0">b</i>' in page
    )
    assert 'class="up v3 likelier" style="--c:1;--p:0.39;--r:60%" title="advantage +2, ratio 8' in page
    assert 'title="advantage +0.5, probability 0.607, version 0">a</i>' in page  # nobody sampled it


def test_what_the_env_says_at_length_is_folded_and_what_the_policy_says_is_not() -> None:
    long = "<b>word</b> " * 100
    said = Context("main", (Utterance("tool", long), Utterance("tool", "short"), Utterance("assistant", long)))
    page = conversations(
        [("step 1", [ReadRollout("3/0", "1", "right", "finished", 5, "a task", [said], "", "", "")])], unlinked
    )
    assert page.count('<details class="fold">') == 1 and "<b>word" not in page and "&lt;b&gt;word" in page


def test_credit_is_in_the_ledger(tmp_path: Path) -> None:
    task = Task((Message("user", "?"),), "4", "keyvalue", 1)
    same, other, unknown = (rollout(task, f"0/{i}", 1.0, turn("abc")) for i in range(3))
    same.set_advantage(0.25)
    other.advantages = np.array([1, 2, 3, 4], np.float32)
    ledger = Ledger(tmp_path / "ledger.db")
    group = Group(0, task, [same, other, unknown])
    ledger.admitted(0, task, 0)
    ledger.finished(group, group, "", 0)
    same.ratios = np.array([1, 0.5, np.nan, 3], np.float32)
    ledger.trained([group], 1)
    rated = [each.ratios for each in ledger.sample(1, 9)]
    assert rated[0] is not None and rated[0].tolist() == pytest.approx([1, 0.5, np.nan, 3], nan_ok=True)
    assert rated[1:] == [None, None] and same.ratios is None  # of this step alone
    assert ledger.rated_steps() == [1]
    read = [each.advantages for each in ledger.sample(1, 9)]
    assert read[0] is not None and read[0].tolist() == [0.25] * 4
    assert read[1] is not None and read[1].tolist() == [1, 2, 3, 4] and read[2] is None


def test_telling_rollouts_show_the_range() -> None:
    first, second = (Task((Message("user", text),), "", "test") for text in "ab")
    rewards = [(first, 0.0), (first, 1.0), (first, 0.5), (second, 0.0), (second, 0.0)]
    rollouts = [rollout(task, str(i), reward, turn("x")) for i, (task, reward) in enumerate(rewards)]
    assert [t.id for t in telling(rollouts, 4)] == ["1", "0", "3"]
    assert [t.id for t in telling(rollouts, 1)] == ["1"]


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
    assert shown.stdout.count('style="visibility: hidden;"') == shown.stdout.count('<svg class="chart')
    assert all(f"<h3>{title}</h3>" in shown.stdout for title in TITLES)
