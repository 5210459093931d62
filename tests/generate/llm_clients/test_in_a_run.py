"""A judge behind an address in whole runs: what it costs, what is left on disk, and what becomes of a dead one."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strop.capabilities import Meets, inside
from strop.errors import ConfigurationError, LLMClientError, RewardError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.generate.llm_clients.own_models import Beginning, Itself
from strop.generate.llm_clients.without_model import Canned
from strop.launch.checks.preflight import check
from strop.launch.running.launch import launch, relaunch
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.guide.ruscarl import RubricPoints
from strop.roles import LLMClient
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.text.llm_prompt import signed
from strop.types import Message, Sampling
from tests.clock import run_virtually
from tests.generate.asking import Speaking
from tests.generate.llm_clients.serving import serving
from tests.generate.talking import policy_of, save_folder
from tests.test_pipeline import make_run as scripted_run
from tests.test_pipeline import opened

TASK_GENERATOR = Canned({"": "1: It is long."})
SECRET = "sk-0815-never-on-disk"


def make_run(model: Path, judge: LLMClient) -> Run:
    sizes = {"steps": 2, "groups_per_step": 2, "group_size": 4, "max_tokens": 6, "heldout_tasks": 1, "heldout_every": 0}
    run = build(recipe_named("grpo"), {"model": str(model), "checkpoint_every": 1, **sizes})
    run.rewards = (RubricPoints(TASK_GENERATOR, judge),)
    return run


def digest(path: Path) -> str:
    ledger = Ledger(path / "ledger.db", read_only=True)
    assert ledger.violations() == []
    return ledger.digest()


def test_a_resumed_run_asks_nobody_twice_and_no_secret_is_on_disk(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", SECRET)
    with serving() as server:
        server.says = lambda text: signed(text, f"{'yes' if len(text) % 2 else 'no'}, and your key is {SECRET}")
        server.answers = [(429, {"Retry-After": "0.01"}), (503, {"Retry-After": "0.01"})]
        launch(make_run(model, Endpoint(server.url, "m", "JUDGE_KEY")), tmp_path, "run")
        folder, paid = tmp_path / "run", len(server.asked)
        assert {each["key"] for each in server.asked} == {f"Bearer {SECRET}"} and paid > 8
        before, metrics = digest(folder), (folder / "metrics.jsonl").read_text()
        shutil.rmtree(folder / "checkpoints" / "step-2")
        (folder / "summary.json").unlink()
        relaunch(folder)
        assert len(server.asked) == paid, "the second step was made again and cost nothing"
    assert digest(folder) == before and (folder / "metrics.jsonl").read_text() == metrics
    assert "JUDGE_KEY" in (folder / "recipe.py").read_text()
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 10 and not [path for path in files if SECRET.encode() in path.read_bytes()]
    kept = sqlite3.connect(folder / "llm_answers.db").execute("SELECT answer FROM answers").fetchall()
    assert len(kept) == paid - 2 and all("[key]" in answer for (answer,) in kept)


def test_a_dead_judge_fails_its_rollouts_and_ends_the_run(model: Path, tmp_path: Path) -> None:
    with serving() as server:
        url = server.url
    run = make_run(model, Endpoint(url, "m", seconds=0.5))
    with pytest.raises(
        RewardError, match=r"100% of the last 8 rollouts failed .*did not answer: no answer within 0.5 s"
    ):
        launch(run, tmp_path, "run")
    rows = sqlite3.connect(tmp_path / "run" / "ledger.db").execute("SELECT outcome, error, reward FROM rollouts")
    found = rows.fetchall()
    assert found and all(outcome == "failed" and "refused" in error for outcome, error, _ in found)


@dataclass
class Dies(LLMClient):
    """Answers after a while, and from some question on never."""

    answers: int = 10**9
    asked: list[str] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        self.asked.append(messages[-1].content)
        if len(self.asked) > self.answers:
            await asyncio.sleep(10**6)
        await asyncio.sleep(1 + key % 3)
        return "yes" if key % 2 else "no"


def test_within_a_deadline_on_a_virtual_clock(model: Path, tmp_path: Path) -> None:
    """A judge that hangs costs 10 s for the group and 10 s for its rollouts alone; what it said before was trained."""
    judge = Dies(answers=30)
    run = scripted_run(steps=9, rewards=(RubricPoints(TASK_GENERATOR, judge),))
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        with pytest.raises(RewardError, match=r"% of the last .*no answer within 10 s"):
            run_virtually(train(flow))
        rows = flow.ledger._rows("SELECT outcome, error FROM rollouts WHERE outcome = 'failed'")
        trained = flow.ledger.counts()["trained"]
        assert flow.ledger.violations() == []
    assert trained == 24 and [row["step"] for row in recorder.rows] == [1, 2], "30 answers are two steps of 12 rollouts"
    assert rows and all("TimeoutError: no answer within 10 s" in row[1] for row in rows)


def test_the_policy_is_asked_as_it_stands_and_as_it_began(tmp_path: Path) -> None:
    now, then = Speaking(lambda prompt, number: f"{number}"), Speaking(lambda prompt, number: "then")
    policy = policy_of(save_folder(tmp_path), WithReference(now, then), max_tokens=200)
    itself, beginning = Itself(), Beginning()
    sampling = Sampling(max_tokens=10**6)

    def heard(llm_client: LLMClient, text: str = "1+1=?") -> str:
        return asyncio.run(llm_client.ask([Message("user", text)], sampling, 3))

    with pytest.raises(LLMClientError, match="not connected yet"):
        heard(itself)
    for each in inside((itself, beginning), Meets):
        each.meet(policy)
    assert [heard(itself), heard(beginning), heard(itself)] == ["0", "then", "1"]
    assert "1+1=?" in now.prompts[0] and itself.num_generated == 4 and beginning.num_generated == 5
    with pytest.raises(LLMClientError, match=rf"a question of \d+ tokens exceeds context={policy.context}: increase"):
        heard(itself, "1+1=?" * policy.context)


def test_whoever_asks_the_beginning_needs_an_engine_that_holds_it(model: Path) -> None:
    run = make_run(model, Beginning())
    with pytest.raises(ConfigurationError, match="need engine=WithReference"):
        check(run)
    run.engine = WithReference(run.engine, TorchEngine())
    check(run)
