"""Steps of the Dockerfile executed in a plain root folder, where there is no builder of images: `make image-steps`.

Each stage is a folder that bubblewrap makes the root; the system's programs, libraries and Python are the host's and
cannot be written. So packages of the system are not installed and users not made, which is printed: no image is built.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT_TO_THE_HOST = ("apt-get ", "useradd ")
SYSTEM = ("bin", "etc", "lib", "lib64", "opt", "sbin", "usr")  # folders of the host that are read


@dataclass(frozen=True)
class Step:
    """An instruction of a Dockerfile with its words."""

    name: str
    text: str


@dataclass
class Stage:
    """A root folder with a Python of its own, and what later steps see."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    place: str = "/"

    def make(self) -> None:
        for name in ("proc", "dev", "tmp", "home"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for path in (Path("/") / name for name in SYSTEM):
            if path.is_symlink():
                (self.folder / path.name).symlink_to(path.readlink())
        self.run(f"{sys.base_prefix}/bin/python3 -m venv /venv")

    def run(self, command: str) -> None:
        """A shell command inside of it."""
        given = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "http", "HTTP"))}
        given |= {"PATH": "/venv/bin:/usr/local/bin:/usr/bin:/bin", "HOME": "/home", **self.variables}
        words = ["bwrap", "--bind", str(self.folder), "/", "--proc", "/proc", "--dev", "/dev"]
        for path in (Path("/") / name for name in SYSTEM):
            if path.is_dir() and not path.is_symlink():
                words += ["--ro-bind", str(path), str(path)]
        words += ["--ro-bind", sys.base_prefix, sys.base_prefix]
        words += ["--chdir", self.place, "--die-with-parent", "/bin/sh", "-ec", command]
        subprocess.run(words, env=given, check=True)

    def path(self, name: str) -> Path:
        """A path as the stage names it, on the host."""
        return self.folder / (name if name.startswith("/") else f"{self.place}/{name}").lstrip("/")


def steps_of(text: str) -> list[Step]:
    """The instructions, those that go on joined and comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [Step(*line.split(maxsplit=1)) for line in joined.splitlines()]


def filled(text: str, values: Mapping[str, str]) -> str:
    """A word of FROM, COPY or ENV with its variables."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values.get(found[1], ""), text)


def execute(dockerfile: Path, place: Path, given: Mapping[str, str]) -> Stage:
    """All steps; the last stage, and what its ENTRYPOINT does with CMD."""
    stages: dict[str, Stage] = {}
    stage, before, entry = Stage(place / "none"), dict(given), list[str]()
    for step in steps_of(dockerfile.read_text()):
        started = time.monotonic()
        if step.name == "FROM":
            stage = Stage(place / f"stage-{len(stages)}")
            stage.make()
            stages[step.text.partition(" AS ")[2] or str(len(stages))] = stage
        elif step.name == "ARG":
            name, _, value = step.text.partition("=")
            (stage.variables if stages else before)[name] = given.get(name, value.strip('"'))
        elif step.name == "ENV":
            name, _, value = step.text.partition("=")
            stage.variables[name] = value
        elif step.name == "WORKDIR":
            stage.place = step.text
            stage.path("").mkdir(parents=True, exist_ok=True)
        elif step.name == "COPY":
            _copy(step.text, stage, stages, dockerfile.parent)
        elif step.name == "RUN" and step.text.startswith(LEFT_TO_THE_HOST):
            print(f"not executed, the host's are taken: {step.text}")
            continue
        elif step.name == "RUN":
            stage.run(step.text)
        elif step.name in ("ENTRYPOINT", "CMD"):
            entry += json.loads(step.text)
        elif step.name != "USER":
            raise SystemExit(f"{dockerfile.name}: {step.name} is not known here")
        print(f"{time.monotonic() - started:6.1f} s  {step.name} {step.text}", flush=True)
    stage.run(" ".join(entry))
    return stage


def _copy(text: str, stage: Stage, stages: Mapping[str, Stage], context: Path) -> None:
    words = text.split()
    source = stages[words.pop(0).removeprefix("--from=")] if words[0].startswith("--from=") else None
    start, target = words
    origin, into = source.path(start) if source else context / start, stage.path(target)
    into.parent.mkdir(parents=True, exist_ok=True)
    if origin.is_file():
        shutil.copy(origin, into)
        return
    left_out = (context / ".dockerignore").read_text().split() if source is None else []
    names = [name.removeprefix("**/") for name in left_out]
    shutil.copytree(origin, into, ignore=shutil.ignore_patterns(*names), dirs_exist_ok=True)


def main() -> None:
    """Every step, then a short training run in the last stage, and the sizes."""
    if shutil.which("bwrap") is None:
        sys.exit("the steps are executed in a root folder by bubblewrap (bwrap), which is not installed")
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="image-steps-", ignore_cleanup_errors=True) as place:
        stage = execute(ROOT / "Dockerfile", Path(place), given)
        stage.run("strop train pocket steps=2 groups_per_step=4 group_size=4 heldout_tasks=4 --quiet")
        used = sum(path.lstat().st_size for path in stage.folder.rglob("*") if path.is_file() and not path.is_symlink())
        print(f"all steps done and a run trained in a plain folder of {used / 1e9:.1f} GB; no image was built")


if __name__ == "__main__":
    main()
