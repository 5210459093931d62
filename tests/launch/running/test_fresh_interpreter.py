"""What a fresh interpreter has imported, asked and set before a run begins: one is started, and answers for all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from strop.errors import ConfigurationError
from strop.run import Run

_ASKED = """
import importlib, json, sys, threading, torch
from functools import partial
from pathlib import Path
def asked(*arguments): raise SystemExit("a GPU was asked for")
for name in ("is_available", "device_count", "current_device", "get_device_capability", "_lazy_init"):
    setattr(torch.cuda, name, asked)
from strop.recipes import recipe_named
recipe_named("rollart")
recipes = [name for name in sys.modules if name.startswith("strop.recipes.") and name.count(".") == 3]
recipe_named("pocket")()
environments = [name for name in ("reasoning_gym", "matplotlib", "datasets", "ray") if name in sys.modules]
from strop.launch.experiments.preloaded_forks import IMPORTED
for name in IMPORTED:
    importlib.import_module(name)
found = {"recipes": recipes, "envs": environments, "threads": threading.active_count()}
from strop.errors import StropError
from strop.launch.experiments.side_by_side import Job, SideBySide
from tests.launch.running.test_fresh_interpreter import told
try:
    SideBySide(Path(sys.argv[1]), 1).run([Job("told", partial(told, ""))])
except StropError as error:
    found["side by side"] = str(error)
print(json.dumps(found))
"""


def told(model: str) -> Run:
    raise ConfigurationError(f"numpy has {os.environ.get('OPENBLAS_NUM_THREADS')} thread")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """It answers as soon as nothing in it asks for a GPU."""
    kept = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    words = [sys.executable, "-c", _ASKED, str(tmp_path_factory.mktemp("runs"))]
    root = Path(__file__).parents[3]
    done = subprocess.run(words, cwd=root, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_recipe_is_imported_alone(fresh: dict[str, Any]) -> None:
    assert fresh["recipes"] == ["strop.recipes.system.rollart"]


def test_a_run_imports_only_the_envs_it_asks_for(fresh: dict[str, Any]) -> None:
    """reasoning-gym alone takes two seconds of every start."""
    assert fresh["envs"] == []


def test_what_runs_are_forked_from_touches_no_gpu_and_starts_no_thread(fresh: dict[str, Any]) -> None:
    assert fresh["threads"] == 1


def test_side_by_side_numpy_has_one_thread(fresh: dict[str, Any]) -> None:
    """In an interpreter of its own: here the process that all are forked from may run already."""
    assert "numpy has 1 thread" in fresh["side by side"]
