"""recipe.py is executed only where this user wrote it here, or said that it may."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import strop
from strop.cli.commands.attack import rewards_of
from strop.cli.commands.evaluate import EvaluationRequest, evaluate_model
from strop.cli.commands.replay import replay_run
from strop.cli.commands.train import resume_run
from strop.cli.fields.overrides import find_recipe
from strop.errors import ConfigurationError
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.storage.run_source import from_source
from strop.storage.trust import is_own, key_path, named_code, sign
from tests.tiny_models import small_grpo_run

_PROOF = "import pathlib\npathlib.Path({!r}).touch()\n"
_COMMANDS: dict[str, Callable[[Path], object]] = {
    "replay": lambda run: replay_run(run, quiet=True),
    "train --resume": lambda run: resume_run(run, [], quiet=True),
    "train --resume steps=": lambda run: resume_run(run, ["steps=9"], quiet=True, changed_anyway=True),
    "eval": lambda run: evaluate_model(_question(run), as_json=True),
    "eval of a checkpoint": lambda run: evaluate_model(_question(run / "checkpoints" / "step-1"), as_json=True),
    "train recipe.py": lambda run: find_recipe(str(run / "recipe.py")),
    "attack recipe.py": lambda run: rewards_of(str(run / "recipe.py"), {}, []),
    "relaunch": lambda run: relaunch(run, changed_anyway=True),
    "retrain": retrain,
    "strop.resume": lambda run: strop.resume(run, quiet=True),
    "strop.train": lambda run: strop.train(run, quiet=True),
}


def _question(model: Path) -> EvaluationRequest:
    return EvaluationRequest(str(model), (), 2, 1, "1", None, 4, 0, 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_grpo_run(tmp_path_factory.mktemp("made"), steps=1)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.mark.parametrize("command", list(_COMMANDS))
def test_a_recipe_that_somebody_changed_is_not_executed(run: Path, tmp_path: Path, command: str) -> None:
    proof = tmp_path / "executed"
    recipe = run / "recipe.py"
    recipe.write_text(_PROOF.format(str(proof)) + recipe.read_text())
    with pytest.raises(ConfigurationError, match=r"executed with your rights:(.|\n)*module pathlib|began with other"):
        _COMMANDS[command](run)
    assert not proof.exists()
    relaunch(run, changed_anyway=True, trust=True)
    assert proof.exists()  # the control: it would have been
    assert is_own(recipe)  # which is remembered


def test_a_folder_of_another_user_or_machine_is_not_executed(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retrain(run)
    monkeypatch.setenv("XDG_STATE_HOME", str(run.parent / "other"))
    for command in _COMMANDS.values():
        with pytest.raises(ConfigurationError, match=r"another user or machine(.|\n)*--trust"):
            command(run)
    assert not key_path().exists()  # whoever only asks makes no key
    assert all(each.is_equal for each in retrain(run, trust=True))
    retrain(run)


def test_the_command_line_says_what_would_be_executed_and_takes_trust(run: Path, tmp_path: Path) -> None:
    other = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "other")}
    for words in (["replay", str(run)], ["train", "--resume", str(run), "--dry-run"]):
        said = subprocess.run(
            [sys.executable, "-m", "strop", *words], env=other, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert said.returncode == 2 and "executed with your rights" in said.stderr and "Traceback" not in said.stderr
        assert str(run / "recipe.py") in said.stderr
    before = (run / "metrics.jsonl").read_text()
    shutil.rmtree(run / "checkpoints" / "step-1")
    dry = [sys.executable, "-m", "strop", "train", "--resume", str(run), "--dry-run"]
    said = subprocess.run(dry, capture_output=True, text=True)
    assert said.returncode == 0 and "Nothing was started" in said.stdout, said.stderr
    assert (run / "metrics.jsonl").read_text() == before and not (run / "checkpoints" / "step-1").exists()
    trusted = [sys.executable, "-m", "strop", "replay", str(run), "--trust"]
    assert subprocess.run(trusted, env=other, capture_output=True).returncode == 0


def test_all_code_that_a_recipe_names_is_listed(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.py"
    recipe.write_text(
        "import sys\nimport os\nfrom strop.run import Run\nsys.path.append('/their/folder')\nfrom theirs import "
        "Environment\n"
        "run = Run(reward=PythonFunction('/tmp/reward.py:pay'), agent=OutsideProgram(command='sh -c evil'))\n"
    )
    found = named_code(recipe)
    assert found[0] == str(recipe)
    wanted = {"module os", "module theirs", "modules in /their/folder", "file /tmp/reward.py:pay"}
    assert set(found[1:]) == wanted | {"command sh -c evil"}
    recipe.write_text("run = (")
    assert "no Python" in named_code(recipe)[0]


def test_the_key_is_one_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    recipe = tmp_path / "recipe.py"
    recipe.write_text("run = 1\n")
    assert sign(recipe, "run = 1\n") == "" and is_own(recipe)
    assert key_path().stat().st_mode & 0o777 == 0o600 and len(key_path().read_bytes()) == 32
    assert list(key_path().parent.iterdir()) == [key_path()]
    assert from_source(recipe) == 1
    key_path().chmod(0o644)
    assert not is_own(recipe) and "chmod 600" in sign(recipe, "run = 1\n")


def test_without_a_place_for_a_key_a_run_is_made_and_says_what_going_on_needs(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    launch(from_source(run / "recipe.py", trust=True), tmp_path, "new")
    assert "will need --trust, no key can be kept" in capsys.readouterr().err
    with pytest.raises(ConfigurationError, match="--trust"):
        relaunch(tmp_path / "new")
    assert relaunch(tmp_path / "new", trust=True)["is_complete"]


def test_attack_takes_a_received_recipe_that_is_trusted(run: Path) -> None:
    """The same switch, with the same meaning and memory, as for training."""
    (run / "recipe.mac").unlink()
    recipe = str(run / "recipe.py")
    with pytest.raises(ConfigurationError, match=r"--trust with train, eval, replay or attack"):
        rewards_of(recipe, {}, [])
    words = [sys.executable, "-m", "strop", "attack", recipe, "--completions", "1"]
    refused = subprocess.run(words, capture_output=True, text=True)
    assert refused.returncode and "--trust" in refused.stdout + refused.stderr
    done = subprocess.run([*words, "--trust"], capture_output=True, text=True)
    assert "no exploit found" in done.stdout and is_own(Path(recipe)), done.stdout + done.stderr
