"""Writes the pinned versions beside this file with uv: `make constraints`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
USED = "datasets,tensorboard,wandb,trackio,mlflow,swanlab,pictures,ray,gguf,smollm2,gymnasium,mcp,serve,browser"
DEV = "benchmark,docs,notebooks,package,dev"
# file: its first line, what it is for, and how uv is told for which machines
FILES = {
    "packages.txt": ("what `make` installs, on Python 3.11 to 3.13", f"-e .[{USED},{DEV}]", ["--universal"]),
    "clients.txt": ("`make clients`: programs of other people", "-e .[dev,clients]", ["--universal"]),
    "vllm.txt": ("`make vllm`, on Linux", "-e .\nvllm-cpu==0.32.*\npytest>=8", []),
}
# CUDA's libraries come with torch or not at all, and vLLM does without packages of pictures and sound
_PLAIN = ("--no-header", "--no-annotate", "--quiet")
LEFT_OUT = ("-e ", "nvidia-", "cuda-", "triton", "torchvision", "torchaudio", "torchcodec")


def versions(wanted: str, options: list[str]) -> list[str]:
    """The lines of one file."""
    asked = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "compile", "-", "--python-version=3.11", *options, *_PLAIN],
        input=f"{wanted}\ntorch==2.13.0\n",
        cwd=HERE.parent,
        text=True,
        capture_output=True,
    )
    if asked.returncode:
        sys.exit(asked.stderr)
    return [line.replace("+cpu", "") for line in asked.stdout.splitlines() if not line.startswith(LEFT_OUT)]


if __name__ == "__main__":
    for name, (purpose, wanted, options) in FILES.items():
        lines = versions(wanted, options)
        (HERE / name).write_text("\n".join([f"# Versions of {purpose}; written by `make constraints`.", *lines]) + "\n")
        print(f"{name}: {len(lines)} packages")
