"""What somebody meets on the first day: own files, own environments, another folder, a closed terminal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from strop import cli
from strop.cli.commands.chat import styled
from strop.cli.fields.overrides import find_recipe
from strop.errors import ConfigurationError

_REPOSITORY = Path(__file__).parent.parent.parent
_SIZES = ["steps=2", "max_tokens=6", "heldout_tasks=3", "groups_per_step=2", "group_size=2", "checkpoint_every=1"]
_RECIPE = '''
"""A recipe and an environment of somebody's own in one file."""

from dataclasses import dataclass, replace

from strop.environments.bundled.arithmetic import Arithmetic
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting


@dataclass(frozen=True)
class Own(Arithmetic):
    """Any completion of three letters is right."""

    name = "own"

    def check(self, task, completion):
        return float(len(completion) == 3)


def ownworld(setting: Setting = Setting()):
    run, env = grpo(setting), Own(1)
    return replace(run, envs=(env,), sampler=replace(run.sampler, envs=(env,)))
'''


@pytest.fixture
def strop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command in an empty folder; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["strop", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capfd.readouterr()
        return int(end.value.code or 0), out, err

    return run


def test_eval_measures_the_envs_of_the_run_as_the_run_did(strop: Any, model: Path, tmp_path: Path) -> None:
    """Also an environment of somebody's own, which no name on the command line could mean, and from another folder."""
    (tmp_path / "ownworld.py").write_text(_RECIPE)
    code, _, err = strop("train", "ownworld.py", f"model={model}", *_SIZES)
    assert code == 0, err
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    sys.modules.pop("ownworld", None)
    sys.path[:] = [each for each in sys.path if each != str(tmp_path)]
    code, out, err = strop("eval", "../runs/grpo-seed0", "--tasks", "2", "--k", "1", "--json")
    assert code == 0, err
    assert [(row["env"], row["tasks"]) for row in json.loads(out)] == [("own", 2)]
    shutil.rmtree(tmp_path / "runs" / "grpo-seed0" / "checkpoints" / "step-2")
    sys.modules.pop("ownworld", None)
    code, out, err = strop("train", "--resume", "../runs/grpo-seed0")
    assert code == 0, err


def test_the_rule_of_answers_is_said_with_an_example(strop: Any, model: Path, tmp_path: Path) -> None:
    rows = [{"id": n, "prompt": [{"role": "user", "content": f"{n}?"}], "answer": f"so\n#### {n}"} for n in range(20)]
    (tmp_path / "a+b.json").write_text(json.dumps(rows))
    code, out, err = strop("train", "grpo", "env=a+b.json", f"model={model}", *_SIZES)
    assert code == 0, err
    assert "a+b: answer=number (all 20 answers end in #### and a number): the last number of a completion counts" in out
    assert r"the answer 'so\n#### " in out and "' is read as '" in out
    code, out, err = strop("train", "grpo", "env=a+b.json", "answer=boxed", f"model={model}", *_SIZES)
    assert code == 0 and "a+b: answer=boxed (as asked for)" in out
    code, out, err = strop("train", "grpo", "answer=boxed", f"model={model}")
    assert code == 2 and "answer=boxed applies to task files only; arithmetic:4 scores completions itself" in err
    assert strop("train", "grpo", "env=a+b.json", "answer=bxed")[0] == 2


def test_what_is_refused_prints_no_opening_and_leaves_no_folder(strop: Any, model: Path, tmp_path: Path) -> None:
    for words in (["device=tpu"], ["context=100000"], ["sampling.top_k=-3"], ["trainer.lora=-1"], ["--name", ".."]):
        code, out, err = strop("train", "grpo", f"model={model}", *words)
        assert code == 2 and out == "" and err.startswith("error: ") and "Traceback" not in err, (words, out, err)
    assert not (tmp_path / "runs").exists()


def test_changed_files_are_refused_until_that_is_wanted(strop: Any, model: Path, tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text("\n".join(json.dumps({"prompt": f"{n}?", "answer": n}) for n in range(20)))
    assert strop("train", "grpo", "env=tasks.jsonl", f"model={model}", *_SIZES)[0] == 0
    (tmp_path / "tasks.jsonl").write_text("\n".join(json.dumps({"prompt": f"{n}?", "answer": 7}) for n in range(20)))
    code, _, err = strop("train", "--resume", "runs/grpo-seed0")
    assert code == 2 and "tasks.jsonl was changed" in err
    assert strop("train", "--resume", "runs/grpo-seed0", "--changed-anyway")[0] == 0


def test_recipe_files_that_cannot_be_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text, said in (
        ("broken.py", "def broken(:", "broken.py cannot be executed: SyntaxError"),
        ("json.py", "", "a module named json is already imported"),
        ("away.py", "import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ConfigurationError, match=said):
            find_recipe(str(tmp_path / name))


def test_codes_of_a_terminal_are_shown_and_not_obeyed() -> None:
    assert styled("\x1b]0;owned\x07a\tb\nc\x9b2J").plain == "\u241b]0;owned\u2407a\tb\nc\ufffd2J"


def _started(model: Path, folder: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "strop", "train", "grpo", f"model={model}", *_SIZES, *words]
    episode = os.environ | {"PYTHONPATH": str(_REPOSITORY), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(command, cwd=folder, env=episode, text=True, **options)


def _hear_hangups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup a child ignores them, which the run then rightly does


def test_a_reader_that_goes_away_ends_no_run(model: Path, tmp_path: Path) -> None:
    process = _started(model, tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(120) == 0, process.stderr.read()
    process.stderr.close()
    assert (tmp_path / "runs" / "grpo-seed0" / "checkpoints" / "step-2").is_dir()


def test_a_closed_terminal_saves(model: Path, tmp_path: Path) -> None:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "preexec_fn": _hear_hangups}
    process = _started(model, tmp_path, "steps=100000", **quiet)
    saved = tmp_path / "runs" / "grpo-seed0" / "checkpoints"
    until = time.monotonic() + 120
    while not any(saved.glob("step-[1-9]*")) and time.monotonic() < until:  # any: older ones make room for newer
        time.sleep(0.1)
    process.send_signal(signal.SIGHUP)
    assert process.wait(120) == 130
    summary = json.loads((tmp_path / "runs" / "grpo-seed0" / "summary.json").read_text())
    assert not summary["is_complete"] and (saved / f"step-{summary['steps']}").is_dir()


def test_a_shell_completes_commands_and_recipes() -> None:
    code = "import sys; sys.argv = ['strop']; from strop.cli import main; main()"

    def completed(words: str) -> list[str]:
        asked = {"_STROP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        done = subprocess.run([sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True)
        return done.stdout.split()

    assert completed("strop rep") == ["report", "replay"]
    assert "grpo" in completed("strop train grp") and "rloo" not in completed("strop train grp")
