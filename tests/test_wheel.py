"""The package as others install it: tried from outside the source tree, in an environment without it (`make wheel`)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(os.environ.get("STROP_WHEEL", ROOT / ".venv-wheel")) / "bin"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TINY = ["steps=2", "groups_per_step=4", "group_size=4", "heldout_tasks=4"]
REWARD = """
def near(completion, answer):
    found = [int(word) for word in completion.split() if word.isdigit()]
    return 1.0 if found and found[-1] == int(answer) else 0.0
"""


def test_versions_agree() -> None:
    assert f"version: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).group(1) in (  # type: ignore[union-attr]
        PROJECT["version"],
        "Unreleased",
    )


def test_no_file_of_the_package_names_a_machine() -> None:
    """No path of a machine and no address of a registry stands where packages are chosen."""
    files = [ROOT / name for name in ("Makefile", "pyproject.toml", "Dockerfile", ".ci/run")]
    files += [*(ROOT / "constraints").iterdir(), *(ROOT / ".github").rglob("*.y*ml")]
    for path in (each for each in files if each.is_file()):
        for word in ("/work/", "/opt/", "/root/", "/home/", "file://", "--index-url http", "index-url = "):
            assert word not in path.read_text(), f"{path.name}: {word}"


def environment() -> dict[str, str]:
    left = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return left | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "STROP_TOKEN": "secret"}


def strop(*words: str, place: Path) -> str:
    done = subprocess.run([BIN / "strop", *words], cwd=place, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def started(*words: str, place: Path) -> Iterator[str]:
    """A server of strop, and the first address that it prints."""
    process = subprocess.Popen(
        [BIN / "strop", *words],
        cwd=place,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        said = ""
        for line in process.stdout:
            said += line
            if found := re.search(r"http://[\w.:]+\d", line):
                yield found.group(0)
                break
        else:
            raise AssertionError(said)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        process.stdout.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a user's table and reward, and a run on them."""
    if not (BIN / "strop").is_file():
        pytest.fail("no installed package: `make wheel` builds and installs one")
    found = tmp_path_factory.mktemp("user")
    rows = [{"prompt": f"{one}+{two}=?", "answer": str(one + two)} for one in range(10, 20) for two in range(10, 20)]
    (found / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (found / "rewards.py").write_text(REWARD)
    strop("train", "grpo", "env=tasks.jsonl", "reward=rewards.py:near", *TINY, "--name", "own", "-q", place=found)
    return found


@pytest.mark.wheel
def test_it_is_the_installed_package(place: Path) -> None:
    assert strop("--version", place=place) == f"strop {PROJECT['version']}\n"
    where = "import strop; print(strop.__file__)"
    done = subprocess.run([BIN / "python", "-c", where], cwd=place, env=environment(), capture_output=True, text=True)
    assert "site-packages" in done.stdout


@pytest.mark.wheel
def test_the_demo_begins(place: Path) -> None:
    strop("train", "pocket", *TINY, "--name", "demo", "-q", place=place)
    assert json.loads((place / "runs" / "demo" / "summary.json").read_text())["is_complete"]


@pytest.mark.wheel
def test_own_data_and_reward_came_to_an_end(place: Path) -> None:
    assert "own" in strop("runs", place=place) and (place / "runs" / "own" / "report.html").is_file()


@pytest.mark.wheel
def test_what_the_package_measured_is_in_it(place: Path) -> None:
    assert "+38.5 points" in strop("recommend", "solved=never", "solutions=yes", "--json", place=place)
    assert "Effect: holds" in strop("papers", "relift", place=place)


@pytest.mark.wheel
def test_a_model_is_exported_and_read_by_transformers(place: Path) -> None:
    strop("export", "runs/own", "-o", "out", place=place)
    program = (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        "model, words = AutoModelForCausalLM.from_pretrained('out'), AutoTokenizer.from_pretrained('out')\n"
        "print(model.generate(**words('1+1=?', return_tensors='pt'), max_new_tokens=4).shape[1])"
    )
    done = subprocess.run([BIN / "python", "-c", program], cwd=place, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0 and int(done.stdout) > 4, done.stderr
    strop("rollouts", "runs/own", "-o", "rows.jsonl", place=place)
    assert len((place / "rows.jsonl").read_text().splitlines()) >= 32


@pytest.mark.wheel
def test_a_model_is_served(place: Path) -> None:
    body = {"model": "own", "messages": [{"role": "user", "content": "12+13=?"}], "max_tokens": 8}
    with started("serve", "runs/own", "--port", "0", place=place) as address:
        request = urllib.request.Request(
            f"{address.removesuffix('/v1')}/v1/chat/completions",
            json.dumps(body).encode(),
            {"Authorization": "Bearer secret", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            said = json.load(answer)
    assert said["choices"][0]["message"]["role"] == "assistant" and said["usage"]["completion_tokens"] > 0


@pytest.mark.wheel
def test_runs_are_watched(place: Path) -> None:
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with (
        started("watch", "runs", "--port", "0", place=place) as address,
        browser.open(f"{address}/?token=secret", timeout=60) as answer,
    ):
        assert b"own" in answer.read()
