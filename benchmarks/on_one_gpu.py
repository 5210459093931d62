"""All figures of one GPU, one measurement after the other, within so many seconds; what is there already is not redone.

    python benchmarks/on_one_gpu.py --to FOLDER [--only 7b_16 drafts ...] [--seconds 560] [--list]

Each is a command in a process of its own. Its JSON object lands in FOLDER/NAME.json and all it printed in
FOLDER/NAME.log. One whose usual time does not fit into what is left is not begun, and one that takes twice that is
ended. At the end stand the headline figures of all that lie in FOLDER. Measurements that matter most come first.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_LONG = ("--rollouts", "4", "--prompt", "28672", "--tokens", "4096", "--length", "32768", "--sequences", "1", "1")
_MIXED = ("--prompt-tokens", "256", "768")
_ARMS = (
    "smollm2",
    "smollm2 trainer.lora=32",
    "smollm2 engine.matmul_precision=fp8 trainer.matmul_precision=fp8",
    "device=cuda",
)


@dataclass(frozen=True)
class Measurement:
    """A command, and how many seconds it takes on an H200, roughly."""

    seconds: int
    words: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        is_script = self.words[0].endswith(".py")
        return [sys.executable, *([str(HERE / self.words[0]), *self.words[1:], "--json"] if is_script else self.words)]


def generation(model: str, sequences: int, tokens: int, *more: str) -> tuple[str, ...]:
    words = ("--models", model, "--sequences", str(sequences), "--tokens", str(tokens), *more)
    return ("generation.py", *words, *(() if "--peers" in more else ("--peers",)))


def training(sequences: int, length: int) -> tuple[str, ...]:
    shape = ("--sequences", str(sequences), "--length", str(length))
    return (
        "training.py",
        "--model",
        "random:1.5b",
        *shape,
        "--sides",
        "strop",
    )  # the whole logits of a peer do not fit


MEASUREMENTS = {
    "tests": Measurement(180, ("-m", "pytest", "-q", "-x", "-m", "gpu", str(HERE.parent / "tests" / "gpu"))),
    "drafts": Measurement(60, ("drafts.py",)),
    "drafts_probability": Measurement(50, ("drafts.py", "--draws", "probability", "--guesses", "2")),
    "7b_16": Measurement(60, generation("7b", 16, 256, *_MIXED, "--peers", "fp8", "race")),
    "7b_256": Measurement(110, generation("7b", 256, 2048, *_MIXED, "--rounds", "1")),
    "smollm2_1024": Measurement(40, generation("smollm2", 1024, 256, "--peers", "race")),
    "training_1024": Measurement(50, training(32, 1024)),
    "training_4096": Measurement(50, training(8, 4096)),
    "adapters": Measurement(70, ("adapters.py",)),
    "adapters_nf4": Measurement(90, ("adapters.py", "--base", "nf4")),
    "adapters_long": Measurement(120, ("adapters.py", *_LONG)),
    "families": Measurement(150, ("families.py", "--families", "gemma3_text", "mixtral", "qwen3_moe")),
    "whole": Measurement(80, ("whole.py",)),
    # adapters and eight bits beside full training; ended too early, it goes on where it was when it is asked for again
    "learning": Measurement(
        540, ("-m", "strop", "compare", *_ARMS, "--seeds", "3", "--jobs", "3", "--tokens", "1500000", "--name", "arms")
    ),
    "1.5b_256": Measurement(60, generation("1.5b", 256, 4096, *_MIXED, "--rounds", "1")),
    "7b_1024": Measurement(70, generation("7b", 1024, 256, "--peers", "fp8")),
}


def measure(name: str, folder: Path, limit: float) -> str:
    """Run it, keep what it says, and tell how it ended."""
    with (folder / f"{name}.log").open("w+") as log:
        command = MEASUREMENTS[name].command
        done = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            done.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(done.pid, signal.SIGKILL)  # and what it started, which would hold the GPU's memory
            done.wait()
            return f"ended after {limit:.0f} s"
        log.seek(0)
        lines = log.read().splitlines()
    found = next((line for line in reversed(lines) if line.startswith("{")), "")
    if done.returncode == 0:
        said = json.loads(found) if found else {"ratio": None, "said": lines[-1:]}
        (folder / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")
    return "done" if done.returncode == 0 else f"failed with {done.returncode}: {(lines or [''])[-1][:120]}"


def measure_all(names: Sequence[str], folder: Path, seconds: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    for name in names:
        usual, left = MEASUREMENTS[name].seconds, seconds - (time.monotonic() - begun)
        if (folder / f"{name}.json").exists():
            print(f"{name}: there already", flush=True)
        elif usual > left:
            print(f"{name}: not begun, {left:.0f} s are left and it takes about {usual}", flush=True)
        else:
            start = time.monotonic()
            ended = measure(name, folder, min(left, 2 * usual))
            print(f"{name}: {ended} ({time.monotonic() - start:.0f} s)", flush=True)


def table(folder: Path) -> str:
    lines = ["| measurement | ratio | reached |", "|---|---|---|"]
    for path in sorted(folder.glob("*.json")):
        said: dict[str, Any] = json.loads(path.read_text())
        ratio = said.get("ratio")
        shown = f"{ratio:.3f}" if isinstance(ratio, float) else "-"
        lines.append(f"| {path.stem} | {shown} | {said.get('is_reached', '-')} |")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--to", type=Path, default=Path("measured"), metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=list(MEASUREMENTS), choices=list(MEASUREMENTS), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=1800.0, help="for all of them together")
    parser.add_argument("--list", action="store_true", help="say what there is, and how long it takes")
    arguments = parser.parse_args(words)
    if arguments.list:
        for name, each in MEASUREMENTS.items():
            print(f"{name:15} about {each.seconds:4} s   {' '.join(each.words)}")
        return 0
    measure_all(arguments.only, arguments.to, arguments.seconds)
    print(table(arguments.to))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
