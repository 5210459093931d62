"""Workflows and the Dockerfile name targets, versions and files that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from tests.image_steps import LEFT_TO_THE_HOST, filled, steps_of

ROOT = Path(__file__).parent.parent
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split())  # type: ignore[index]
BY_HAND = {"pages", "constraints", "clean"}  # these write files or remove them
OF_TEST = {"lint", "types", "unit"}  # parts of `make test`


def steps(workflow: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(job, step) for job in workflow["jobs"].values() for step in job["steps"]]


def made(workflow: dict[str, Any]) -> set[str]:
    """The make targets of a workflow, those of a matrix filled in."""
    found = set()
    for job, step in steps(workflow):
        for target in re.findall(r"\bmake (\$\{\{ matrix\.target \}\}|[\w-]+)", step.get("run", "")):
            found |= {target} if "$" not in target else set(job["strategy"]["matrix"]["target"])
    return found


def test_workflows_make_every_target_and_no_other() -> None:
    named = set().union(*(made(workflow) for workflow in WORKFLOWS.values()))
    assert named <= TARGETS, f"no such target: {named - TARGETS}"
    assert named >= TARGETS - BY_HAND - OF_TEST, f"in no workflow, so it may rot: {TARGETS - BY_HAND - OF_TEST - named}"
    rules = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert rules >= TARGETS


def test_what_test_leaves_out_is_scheduled() -> None:
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    targets = {target for marker in markers for target in re.findall(r"run by `make ([\w-]+)`", marker)}
    assert len(targets) > 8 and targets <= made(WORKFLOWS["scheduled"])


def test_tests_run_on_every_python_that_is_promised() -> None:
    promised = {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", each)}
    assert set(WORKFLOWS["tests"]["jobs"]["linux"]["strategy"]["matrix"]["python"]) == promised
    assert WORKFLOWS["tests"]["jobs"]["macos"]["runs-on"].startswith("macos")


def test_every_step_is_whole() -> None:
    for name, workflow in WORKFLOWS.items():
        assert {"name", "jobs"} <= set(workflow) and True in workflow, f"{name}: YAML reads `on` as true"
        for job, step in steps(workflow):
            assert ("uses" in step) != ("run" in step) and "runs-on" in job, (name, step)
            assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step["uses"]), step
            for file in re.findall(r"(?<![\w/])(\.ci/\w+|constraints/\w+\.txt)", str(step)):
                assert (ROOT / file).is_file(), file
        for job in workflow["jobs"].values():
            assert job.get("needs", "build") in workflow["jobs"] or "needs" not in job


def test_the_dockerfile_copies_what_there_is_and_a_script_can_execute_it() -> None:
    found = steps_of((ROOT / "Dockerfile").read_text())
    names = [step.name for step in found]
    assert set(names) <= {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT", "CMD"}
    assert names.count("FROM") == 2 and found[-1].text == '["--help"]'
    for step in (each for each in found if each.name == "COPY" and "--from" not in each.text):
        assert (ROOT / step.text.split()[0]).exists(), step.text
    extras = next(step.text for step in found if step.text.startswith("EXTRAS=")).partition("=")[2].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    skipped = [step.text for step in found if step.text.startswith(LEFT_TO_THE_HOST)]
    assert len(skipped) == 2 and filled("${BASE}-$BASE", {"BASE": "a"}) == "a-a"


def test_pins_cover_what_the_package_asks_for() -> None:
    """A direct dependency without a pin would be searched for at each installation."""
    pins = {name: _pinned(name) for name in ("packages", "clients")}
    extras = PROJECT["optional-dependencies"]
    own = [
        *PROJECT["dependencies"],
        *(each for name, all_ in extras.items() if name not in ("vllm", "clients") for each in all_),
    ]
    assert not [each for each in own if _name(each) not in pins["packages"]]
    assert not [each for each in extras["clients"] + PROJECT["dependencies"] if _name(each) not in pins["clients"]]


def _pinned(name: str) -> set[str]:
    lines = (ROOT / "constraints" / f"{name}.txt").read_text().splitlines()[1:]
    assert all(re.match(r"[\w.-]+==\S+( ; .*)?$", line) for line in lines)
    return {_name(line) for line in lines}


def _name(wanted: str) -> str:
    return re.split(r"[<>=\[; ]", wanted)[0].lower().replace("_", "-")
