"""The command as people use it: exit codes, errors in one line, stopping and going on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from strop import cli
from strop.cli.commands.show import line_of
from strop.observe.report.transcripts import Utterance
from strop.types import Metrics
from tests.observe.folders import run_folder

SMALL = ["env=arithmetic:1", "max_tokens=6", "heldout_tasks=4", "groups_per_step=2", "group_size=2"]


@dataclass
class Interrupts:
    """A tracker that presses Ctrl-C after a step."""

    step: int = 2

    def open(self, folder: Path, settings: dict[str, Any]) -> None:
        pass

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        if step == self.step:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)  # a thread hears it, which may wait for a processor

    def end(self) -> None:
        pass


@pytest.fixture
def strop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command in an empty folder; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["strop", *words])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        told = capfd.readouterr()
        return int(code), told.out, told.err

    return run


def test_help_names_every_command(strop: Any) -> None:
    code, out, _ = strop("--help")
    assert code == 0
    for command in ("train", "eval", "chat", "runs", "report", "papers", "effect", "replay", "why"):
        assert command in out


def test_help_lists_recipes_and_fields(strop: Any) -> None:
    code, out, _ = strop("train", "--help")
    assert code == 0 and "expert_iteration" in out and "pocket (default)" in out
    code, out, _ = strop("train", "grpo", "--help")
    assert code == 0
    for field in ("learning_rate", "kl", "trainer.weight_decay", "max_generated_tokens"):
        assert field in out
    assert "envs" not in [line.split()[0] for line in out.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["train", "grop"], "did you mean grpo"),
        (["train", "stepz=3"], "did you mean steps"),
        (["train", "steps=x"], "steps must be a whole number, got 'x'"),
        (["train", "group_size=1", "model=MODEL"], "need >= 2 rollouts per group, got 1"),
        (["train", "model=nowhere"], "nowhere"),
        (["train", "--track", "tensorbord"], "did you mean tensorboard"),
        (["train", "--resume", "runs/none"], "no recipe.py"),
        (["train", "--resume", "runs/none", "seed=3"], "cannot be set"),
        (["eval", "nowhere"], "there is no model 'nowhere'"),
        (["eval", "MODEL", "--k", "1,x"], "1,4,16"),
        (["eval", "MODEL", "--k", "8", "--rollouts", "4"], "at least 8 rollouts per task, got 4"),
        (["eval", "MODEL", "--env", "arithmetik:1"], "did you mean arithmetic"),
        (["report", "nowhere"], "no recipe.py"),
        (["effect", "nothing"], "there is no experiment 'nothing'"),
        (["train", "--name"], "--name"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_wrong_usage_ends_with_2_and_leaves_nothing(
    strop: Any, model: Path, tmp_path: Path, words: list[str], part: str
) -> None:
    code, _, err = strop(*[word.replace("MODEL", str(model)) for word in words])
    assert code == 2
    assert part in err and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_where_it_broke(strop: Any) -> None:
    with pytest.raises(Exception, match="did you mean grpo"):
        strop("train", "grop", "--debug")


def test_train_tells_before_and_after(strop: Any, model: Path, tmp_path: Path) -> None:
    code, out, err = strop("train", f"model={model}", "steps=2", *SMALL, "--name", "first")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("pocket trains") and lines[0].endswith("→ runs/first") and "arithmetic 1" in lines[0]
    assert any(line.startswith("pocket step 2/2") and "tok/s" in line for line in lines)
    assert any(line.startswith("held-out accuracy") and "95% interval" in line for line in lines)
    assert lines[-1] == "report: runs/first/report.html"
    assert json.loads((tmp_path / "runs/first/summary.json").read_text())["steps"] == 2
    assert "it/s]" not in err  # progress bars of libraries


def test_quiet_prints_the_result_only(strop: Any, model: Path) -> None:
    code, out, _ = strop("train", f"model={model}", "--quiet", "steps=1", *SMALL, "--runs", "elsewhere")
    assert code == 0
    assert len(out.splitlines()) == 3 and out.startswith("held-out accuracy")


def test_stopped_by_ctrl_c_and_resumed(strop: Any, model: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.py"
    recipe.write_text(
        "from dataclasses import replace\nfrom strop.recipes.classics.grpo import grpo\n"
        "from strop.recipes.setting import Setting\n"
        "from tests.cli.test_cli import Interrupts\n"
        f"setting = Setting('arithmetic:1', {str(model)!r}, 0, 4, 2, 2, max_tokens=6, heldout_tasks=4)\n"
        "run = replace(grpo(setting), trackers=(Interrupts(),))\n"
    )
    code, out, _ = strop("train", str(recipe))
    assert code == 130
    assert out.splitlines()[-1] == "stopped; resume with: strop train --resume runs/grpo-seed0"
    assert json.loads((tmp_path / "runs/grpo-seed0/summary.json").read_text())["steps"] < 4
    code, out, err = strop("train", "--resume", "runs/grpo-seed0")
    assert code == 0, err
    assert json.loads((tmp_path / "runs/grpo-seed0/summary.json").read_text())["steps"] == 4


def test_a_run_folder_in_use_is_refused(strop: Any, tmp_path: Path, model: Path) -> None:
    assert strop("train", f"model={model}", "--quiet", "steps=1", *SMALL, "--name", "busy")[0] == 0
    from strop.storage.run_folder import RunFolder

    holder = RunFolder(tmp_path / "runs" / "busy")
    holder.acquire()
    code, _, err = strop("train", "--resume", "runs/busy")
    holder.release()
    assert code == 2 and f"in use by process {os.getpid()}" in err


def test_eval_as_table_and_as_json(strop: Any, model: Path) -> None:
    words = ["eval", str(model), "--env", "arithmetic:1+compose:1", "--tasks", "3", "--k", "1,2", "--max-tokens", "4"]
    code, out, _ = strop(*words, "--against", str(model), "--plan", "5")
    assert code == 0 and "compose" in out
    for told in (
        "avg@2",
        "maj@2",
        "pass@2",
        "truncated",
        "paired by task",
        "tasks needed to detect a difference of 5 points",
    ):
        assert told in out
    assert [line.split()[-4] for line in out.splitlines() if line.startswith("all ")] == ["+0.0"], "the same rollouts"
    assert "6 tasks with 2 rollouts each detect" in out
    code, out, _ = strop(*words, "--json")
    rows = json.loads(out)
    assert [(row["env"], row["level"], row["tasks"], row["rollouts"]) for row in rows] == [
        ("arithmetic", 1, 3, 2),
        ("compose", 1, 3, 2),
    ]
    assert rows[0]["pass_at"]["1"]["estimate"] <= rows[0]["pass_at"]["2"]["estimate"]
    assert rows[0]["avg_at"]["2"] == rows[0]["pass_at"]["1"] and rows[0]["truncated_share"] > 0
    assert rows[0]["maj_at"]["2"]["low"] <= rows[0]["maj_at"]["2"]["estimate"]
    assert strop(*words, "--json")[1] == out


def test_chat_goes_on_over_turns(strop: Any, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter(["hi", "", "2+2=?", "/new", "hi", "/quit"])
    monkeypatch.setattr("builtins.input", lambda *_: next(said))
    code, out, err = strop("chat", str(model), "--max-tokens", "5", "--temperature", "0")
    assert code == 0, err
    completions = [line for line in out.splitlines() if line and "temperature" not in line]
    assert len(completions) >= 3
    assert next(said, None) is None


def test_runs_and_report(strop: Any, tmp_path: Path) -> None:
    assert "no runs in runs" in strop("runs")[1]
    run_folder(tmp_path / "runs" / "whole", steps=20)
    run_folder(tmp_path / "runs" / "half", steps=20, planned=40)
    (tmp_path / "runs" / "not-a-run").mkdir()
    code, out, _ = strop("runs")
    assert code == 0
    rows = {line.split()[0]: line.split() for line in out.splitlines()[1:]}
    assert rows["whole"][2] == "20/20" and rows["whole"][-1] == "complete"
    assert rows["half"][2] == "20/40" and rows["half"][-1] == "stopped"
    assert set(rows) == {"whole", "half"}
    assert len(json.loads(strop("runs", "--json")[1])) == 2
    code, out, _ = strop("report", "runs/half")
    assert code == 0 and (tmp_path / out.strip()).is_file()


def test_rollouts_are_shown_as_conversations(strop: Any, tmp_path: Path) -> None:
    run_folder(tmp_path / "runs" / "run", steps=4)
    code, out, _ = strop("show", "runs/run", "0/1")
    assert code == 0 and "0/1  reward 0  finished" in out and "assistant sorry" in out
    assert "\u241b]0;owned" in line_of(Utterance("tool", "\x1b]0;owned\x07"), "none").plain, "a terminal obeys nobody"
    code, out, _ = strop("show", "runs/run", "--step", "2", "--by", "version")
    assert code == 0 and "reward 1" in out and "reward 0" in out
    for wrong, said in ((["9/9"], "no rollout '9/9'"), (["--step", "9"], "steps 1 to 4"), (["--by", "x"], "version")):
        code, _, err = strop("show", "runs/run", *wrong)
        assert code == 2 and said in err
    assert strop("show", "runs/nothing")[0] == 2


def test_replay_and_why(strop: Any, model: Path, tmp_path: Path) -> None:
    strop("train", "grpo", f"model={model}", "steps=2", *SMALL, "--name", "run", "--quiet")
    code, out, _ = strop("replay", "runs/run")
    assert code == 0 and "step    2" in out and "equal: 2 steps retrained from the ledger, 3 versions compared" in out
    code, out, _ = strop("why", "runs/run")
    assert code == 0 and out.startswith("not running: ended ")
    database = sqlite3.connect(tmp_path / "runs" / "run" / "ledger.db")
    database.execute("UPDATE versions SET fingerprint='other' WHERE step=1")
    database.commit()
    database.close()
    code, out, _ = strop("replay", "runs/run", "--quiet")
    assert code == 1 and out.startswith("differs at step 1: published other")
    assert strop("why", "runs/nothing")[0] == 2 and strop("replay", "runs/nothing")[0] == 2


def test_a_run_that_fails_ends_with_1(strop: Any, model: Path, tmp_path: Path) -> None:
    """An environment whose every rollout is wrong starves a gate that keeps successes."""
    code, _, err = strop("train", "expert_iteration", f"model={model}", "steps=1", *SMALL)
    assert code == 1
    assert "no success reaches 1" in err and "Traceback" not in err
    shutil.rmtree(tmp_path / "runs")


def test_a_field_deep_inside_is_not_refused_too_early(strop: Any) -> None:
    code, _, err = strop("train", "grpo", "weight_decay=0.1")
    assert code == 2 and "did you mean trainer.weight_decay?" in err


def test_fields_of_a_recipe_are_described(strop: Any) -> None:
    _, out, _ = strop("train", "ring_1t", "--help")
    text = " ".join(out.split())
    assert "rollouts per group" in text and "groups in flight" in text  # of the setting, and of the recipe's own
    assert "trainer.weight_decay" in text and "sampling.stop" in text and "gates" in text and "--place" in text


def test_doctor_says_what_is_wrong_and_what_helps(strop: Any, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "runs" / "sick", steps=20)
    code, out, _ = strop("doctor", "runs/sick")
    assert code == 0 and out.startswith("runs/sick: no findings")
    rows = [json.loads(line) | {"truncated_share": 0.8} for line in folder.metrics.read_text().splitlines()]
    folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = strop("doctor", "runs")
    assert code == 1 and "too many truncated: 80% of the last rollouts were cut" in out and "remedy: raise" in out
    code, out, _ = strop("doctor", "runs/sick", "--json")
    (verdict,) = json.loads(out)["runs/sick"]
    assert code == 1 and verdict["name"] == "too many truncated" and verdict["is_grave"]
    code, _, err = strop("doctor", "runs/sik")
    assert code == 2 and "did you mean sick" in err
