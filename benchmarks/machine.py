"""When, where and with what a figure was measured; and where figures are kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("strop", "torch", "triton", "transformers", "trl", "vllm")


def circumstances(device: str) -> dict[str, Any]:
    """Date, hardware and versions."""
    versions = {name: found for name in _PACKAGES if (found := _version(name))}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": _hardware(device),
        "python": platform.python_version(),
        "versions": versions,
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _hardware(device: str) -> str:
    if torch.device(device).type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB, {os.cpu_count()} cores"
    return f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def synchronize(device: str) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def bandwidth(device: str) -> float:
    """Bytes per second that a large copy reads and writes together."""
    count = 2**30 if torch.device(device).type == "cuda" else 2**24
    source = torch.ones(count, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    best = float("inf")
    for _ in range(5):
        synchronize(device)
        start = time.perf_counter()
        target.copy_(source)
        synchronize(device)
        best = min(best, time.perf_counter() - start)
    return 2 * source.nbytes / best


def operations(device: str) -> float:
    """Operations per second of a large matrix product, in what an engine computes in there."""
    is_gpu = torch.device(device).type == "cuda"
    size = 8192 if is_gpu else 512
    one = torch.randn(size, size, device=device, dtype=torch.bfloat16 if is_gpu else torch.float32)
    best = float("inf")
    for _ in range(5):
        synchronize(device)
        start = time.perf_counter()
        one @ one
        synchronize(device)
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def publish(result: dict[str, Any], table: str, arguments: argparse.Namespace) -> None:
    """Print the table or the JSON, and keep the figures where that was asked for."""
    print(json.dumps(result) if arguments.json else table)
    if arguments.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{arguments.save}.json").write_text(json.dumps(result, indent=1) + "\n")


def measure_seeds(
    about: str | None,
    seeds: int,
    measure: Callable[[int], dict[str, Any]],
    table: Callable[[dict[str, Any]], str],
    words: Sequence[str] | None,
) -> None:
    """The command of a benchmark on a CPU of which only the number of seeds can be chosen."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=seeds)
    kept_arguments(parser)
    arguments = parser.parse_args(words)
    found = measure(arguments.seeds)
    publish(found | circumstances("cpu"), table(found), arguments)


def output_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default=default_device())
    kept_arguments(parser)


def kept_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--save", default="", metavar="NAME", help="also write results/NAME.json")
