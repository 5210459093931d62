"""Named parts are asked before the run: what gives no readable answer is refused, what fails in the run is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strop.capabilities import inside
from strop.errors import ConfigurationError, LLMClientError, StarvationError
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.launch.running.asking import ask_parts
from strop.launch.running.launch import launch
from strop.observe.health.throughput import UnansweredPart
from strop.observe.live.progress_bar import ShownStanding
from strop.observe.run_files.run_history import History
from strop.recipes import build, recipe_named
from strop.run import Run
from tests.generate.llm_clients.serving import Server, serving
from tests.tiny_models import save_pocket_like

# by class of part: a recipe, its parameter, and a word of what it is asked
PARTS = {
    "carmo": ("judge", "Name the criteria"),
    "trm": ("judge", "Judge each numbered sentence"),
    "fapo": ("judge", "first wrong one"),
    "clpo": ("generator", "Write [task]"),
    "agent_rlvr": ("teacher", "The completion to the task failed"),
    "xskill": ("teacher", "is to be learned"),
}


def code(asked: str) -> str:
    found = re.search(r"`answer ([a-z]{6}):`", asked)
    return f"answer {found[1]}: " if found else ""


def told(asked: str) -> str:
    """A well-behaved model."""
    if "Name the criteria" in asked:
        return "- It is right.\n- It is short."
    if "each numbered requirement" in asked:
        return f"{code(asked)}\n1: 80\n2: {len(asked) % 100}"
    if "numbered sentence" in asked:
        count = len(re.findall(r"^\d+: ", asked.partition("[/completion")[0], re.MULTILINE))
        return code(asked) + "\n" + "\n".join(f"{n}: faithful; so; correct" for n in range(1, count + 1))
    if "Write [task]" in asked:
        return "[task]\nAnn has 4 pens and buys 5 more. How many has she now?\n[answer]\n9"
    return f"{code(asked)}-1" if "first wrong" in asked else "add: count the marbles twice"


def table(folder: Path) -> Path:
    path = folder / "own.jsonl"
    rows = [{"prompt": f"Tom has {n} marbles and buys 7 more. How many?", "answer": str(n + 7)} for n in range(40)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def make_run(recipe: str, folder: Path, server: Server, **fields: Any) -> Run:
    part = {PARTS[recipe][0]: f"{server.url.rstrip('/')}#m"}
    sizes = {"steps": 2, "groups_per_step": 2, "group_size": 4, "max_tokens": 6, "heldout_tasks": 1, "heldout_every": 0}
    return build(recipe_named(recipe), {"env": str(table(folder)), **sizes, **part, **fields})


@pytest.mark.parametrize("recipe", PARTS)
def test_each_part_is_asked_about_a_row_of_the_table(recipe: str, tmp_path: Path) -> None:
    with serving() as server:
        server.says = told
        ask_parts(make_run(recipe, tmp_path, server))
    texts = [each["messages"][-1]["content"] for each in server.asked]
    assert any("Tom has" in text and PARTS[recipe][1] in text for text in texts)


@pytest.mark.parametrize("recipe", ["carmo", "trm", "fapo", "clpo"])
def test_an_answer_that_cannot_be_read_is_refused_before_the_run(recipe: str, tmp_path: Path) -> None:
    with serving() as server:
        server.says = lambda text: "I am sorry, I cannot help with that."
        with pytest.raises(ConfigurationError) as caught:
            ask_parts(make_run(recipe, tmp_path, server))
    message = str(caught.value)
    assert f"{PARTS[recipe][0]}={server.url.rstrip('/')}#m" in message and "I am sorry, I cannot" in message
    assert PARTS[recipe][1] in message, "what was asked, without the texts that it shows"


@pytest.mark.parametrize("status", [401, b"no JSON"])
def test_an_endpoint_that_refuses_is_refused_and_says_why(status: Any, tmp_path: Path) -> None:
    with serving() as server:
        server.answers = [status] * 9
        with pytest.raises(ConfigurationError, match=r"did not answer: (status 401|an answer without choices)"):
            ask_parts(make_run("carmo", tmp_path, server))


def test_where_nothing_listens_nobody_waits(tmp_path: Path) -> None:
    with serving() as server:
        pass
    with pytest.raises(ConfigurationError, match=r"^judge=http.*: nothing answers at http.*refused"):
        ask_parts(make_run("carmo", tmp_path, server))


def trained(folder: Path, says: Callable[[str], str]) -> list[dict[str, Any]]:
    with serving() as server:
        server.says = says
        run = make_run("carmo", folder, server, model=str(save_pocket_like(folder / "model")))
        launch(run, folder, "run")
    return [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]


def test_what_a_judge_leaves_unread_is_counted(tmp_path: Path) -> None:
    calls = list[str]()

    def says(text: str) -> str:
        calls.append(text)
        return "no idea" if len(calls) % 9 == 0 else told(text)

    rows = trained(tmp_path, says)
    asked, unread = (sum(row.get(f"judge/{name}", 0.0) for row in rows) for name in ("asked", "unread"))
    assert asked > 16 and 0 < unread < asked / 4 and sum(row.get("judge/failed", 0.0) for row in rows) == 0
    standing = ShownStanding(2)
    standing.stepped(1, {"judge/asked": 10.0, "judge/failed": 1.0, "judge/unread": 2.0}, {})
    assert ("judge unanswered", "30%") in standing.metrics()


def test_a_judge_that_falls_silent_stops_the_run(tmp_path: Path) -> None:
    calls = list[str]()

    def says(text: str) -> str:
        calls.append(text)
        return told(text) if len(calls) < 12 else "As a language model I would rather not say."

    with pytest.raises(LLMClientError, match=r"of the last 16 questions had no readable answer \(limit 50%\)"):
        trained(tmp_path, says)


def test_the_doctor_names_the_part() -> None:
    rows = [{"step": 1, "judge/asked": 40.0, "judge/failed": 3.0, "judge/unread": 9.0, "teacher/asked": 40.0}]
    finding = UnansweredPart().judge(History(rows))
    assert finding is not None and finding.is_grave and "12 of 40 questions to judge" in finding.evidence
    assert UnansweredPart().judge(History([{"step": 1, "judge/asked": 40.0, "judge/failed": 1.0}])) is None


def test_a_judge_that_scores_all_alike_is_named_where_the_run_starves(tmp_path: Path) -> None:
    with pytest.raises(StarvationError, match=r"The scores are those of judge=http\S+#m: where it scores all"):
        trained(tmp_path, lambda text: f"{code(text)}\n1: 50\n2: 50" if "numbered requirement" in text else told(text))


def test_a_function_of_a_file_is_a_part(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "async def judge(messages, max_tokens):\n    assert max_tokens > 1\n"
        "    asked = messages[-1]['content']\n    return '- It is right.' if 'Name the' in asked else '1: 70'\n"
        "def broken(prompt):\n    raise OSError('no quota')\n"
    )
    with serving() as server:
        ask_parts(make_run("carmo", tmp_path, server, judge=f"{own}:judge"))
        with pytest.raises(ConfigurationError, match=r"own.py:broken failed: OSError: no quota"):
            ask_parts(make_run("carmo", tmp_path, server, judge=f"{own}:broken"))


def test_a_slow_endpoint_is_waited_for_until_its_deadline(tmp_path: Path) -> None:
    with serving() as server:
        server.answers = [0.3, 0.3, 0.3]
        run = make_run("carmo", tmp_path, server)
        for each in inside(run.rewards, Endpoint):
            each.seconds = 0.1
        with pytest.raises(ConfigurationError, match=r"did not answer: no answer within 0.1 s"):
            ask_parts(run)
