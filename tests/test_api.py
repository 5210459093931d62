"""The importable face: what `import strop` offers, quick to import, in scripts and where an event loop runs already."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

import strop
from strop import Run, Setting, recipe, train
from strop.errors import ConfigurationError
from strop.recipes.classics.grpo import grpo

SMALL = {"steps": 2, "groups_per_step": 2, "group_size": 4, "heldout_tasks": 4}


def test_six_names() -> None:
    assert dir(strop) == ["Run", "Setting", "__version__", "recipe", "resume", "train"]
    assert strop.__version__ == version("strop")
    with pytest.raises(AttributeError, match="no attribute 'trane'"):
        strop.trane  # noqa: B018


def test_importing_it_imports_nothing_heavy() -> None:
    code = "import strop, sys; print(strop.__version__, {'torch', 'transformers', 'rich'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == f"{version('strop')} set()\n"


def test_a_recipe_by_name_is_the_run_that_its_function_makes() -> None:
    run = recipe("grpo", env="arithmetic:3", minibatches=4, seed=7)
    assert isinstance(run, Run) and run == replace(grpo(Setting(env="arithmetic:3", seed=7)), minibatches=4)
    with pytest.raises(ConfigurationError, match=r"there is no recipe 'grop'.*grpo"):
        recipe("grop")
    with pytest.raises(ConfigurationError, match=r"no field 'step'.*steps"):
        recipe("grpo", step=4)


def test_trains_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = train(recipe("grpo", **SMALL), runs=tmp_path)
    assert summary["folder"] == str(tmp_path / "grpo-seed0") and summary["is_complete"] and summary["steps"] == 2
    assert "grpo step 2/2" in capsys.readouterr().out
    assert train(summary["folder"], quiet=True)["steps"] == 2
    assert capsys.readouterr().out == ""
    with pytest.raises(ConfigurationError, match="is not a run folder"):
        train(tmp_path / "nothing")


def test_trains_where_an_event_loop_runs_and_a_refusal_comes_through(tmp_path: Path) -> None:
    async def cell() -> int:
        with pytest.raises(ConfigurationError, match="groups_per_step"):
            train(recipe("grpo", groups_per_step=0), runs=tmp_path, quiet=True)
        steps: int = train(recipe("grpo", **SMALL), runs=tmp_path, quiet=True)["steps"]
        return steps

    assert asyncio.run(cell()) == 2


def test_an_interrupted_cell_ends_after_its_step_and_can_be_gone_on_with(tmp_path: Path) -> None:
    metrics, main = tmp_path / "cell" / "metrics.jsonl", threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        while not metrics.is_file() or metrics.read_text().count("\n") < 2:
            time.sleep(0.05)
        signal.pthread_kill(main, signal.SIGINT)

    async def cell() -> None:
        threading.Thread(target=interrupt).start()
        train(recipe("grpo", **SMALL | {"steps": 500}), name="cell", runs=tmp_path, quiet=True)

    loop = asyncio.new_event_loop()
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(cell())
    loop.close()
    assert metrics.read_text().count("\n") < 100
    assert (tmp_path / "cell" / "checkpoints" / "step-0").is_dir()
