"""Tools of other people measure a checkpoint: docs/programs.md works as it stands, and all find the same score."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.clients
PAGE = (Path(__file__).parents[3] / "docs" / "programs.md").read_text()
KNOWN = os.environ | {"STROP_TOKEN": "secret", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
KNOWN |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(Path(__file__).parents[3])}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of the bundled model."""
    command = [sys.executable, "-m", "strop", "serve", "pocket", "--port", "0"]
    with (
        (folder / "complaints").open("w") as complaints,
        subprocess.Popen(command, env=KNOWN, stdout=subprocess.PIPE, stderr=complaints, text=True) as process,
    ):
        assert process.stdout is not None
        yield re.findall(r"answers at (http://\S+):", process.stdout.readline())[0]
        process.terminate()


def written(folder: Path) -> Path:
    """The page's files."""
    for name, block in re.findall(r"^`(\S+)`\n\n```\w+\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE):
        (folder / name).write_text(block)
    run(folder, f"{sys.executable} export.py")
    return folder


def command_of(word: str, address: str) -> str:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (found,) = [block for kind, block in blocks if not kind and word in block]
    return found.strip().replace("http://127.0.0.1:8000", address)


def run(folder: Path, command: str) -> str:
    made = subprocess.run(["bash", "-c", command], cwd=folder, env=KNOWN, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> float:
    words = command_of("strop eval", "").replace("strop eval", f"{sys.executable} -m strop eval", 1)
    (score,) = json.loads(run(tmp_path_factory.mktemp("eval"), f"{words} --json"))
    return float(score["pass_at"]["1"]["estimate"])


def test_lm_eval_finds_what_strop_eval_finds(expected: float, tmp_path: Path) -> None:
    pytest.importorskip("lm_eval")
    with served(tmp_path) as address:
        run(written(tmp_path), command_of("lm_eval run", address) + " --output_path found")
    (results,) = (tmp_path / "found").rglob("results_*.json")
    assert json.loads(results.read_text())["results"]["strop_tasks"]["exact_match,none"] == expected
    assert 0.2 < expected < 0.9, "a score that could differ"


def test_inspect_finds_what_strop_eval_finds(expected: float, tmp_path: Path) -> None:
    if find_spec("inspect_ai") is None or int(version("openai").split(".")[0]) < 3:
        pytest.skip("inspect-ai is not installed, or the openai beside it is older than it needs")
    with served(tmp_path) as address:
        command = command_of("inspect eval", address) + " --display plain --log-format json --log-dir found"
        run(written(tmp_path), command)
    (log,) = (tmp_path / "found").glob("*.json")
    told = json.loads(log.read_text())["results"]
    assert told["completed_samples"] == 64 and told["scores"][0]["metrics"]["mean"]["value"] == expected
