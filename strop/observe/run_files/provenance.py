"""Provenance of a result besides its settings: versions, hardware, commit, and the code itself."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from strop.kernels.cpu.build import compiler_here, library

_PACKAGE = Path(__file__).parents[2]
_SHOWN = 12  # digits of a hash


def versions() -> dict[str, str]:
    """Of what a result depends on; a source tree that was never installed has none."""
    found = {"python": platform.python_version()}
    for name in ("strop", "torch", "transformers"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def hardware(device: str = "cpu") -> dict[str, str | int]:
    """Processor, cores, and the GPU where one is used."""
    found: dict[str, str | int] = {"processor": _processor(), "cores": os.cpu_count() or 1}
    if device.startswith("cuda"):
        found["gpu"] = _told("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").partition("\n")[0]
    return found


def commit() -> str:
    """The commit that the code lies in, with a + where it was changed since; "unknown" outside of a clone."""
    where = ("git", "-C", str(_PACKAGE.parent))
    found = _told(*where, "rev-parse", f"--short={_SHOWN}", "HEAD")
    is_changed = _told(*where, "status", "--porcelain", "--untracked-files=no") not in ("", "unknown")
    return f"{found}+" if is_changed else found


def compiler() -> str:
    """What compiled the kernels for the CPU, or that torch computes in their place: last bits depend on it."""
    command = compiler_here()
    if command is None or library("train") is None:
        return "none: plain torch"
    return _told(command, "--version").partition("\n")[0]


@cache
def code() -> str:
    """A hash of the package's source as this process found it: equal hashes, equal code, with or without a commit."""
    state = hashlib.sha256()
    for path in sorted(path for ending in ("py", "c", "h") for path in _PACKAGE.rglob(f"*.{ending}")):
        state.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + path.read_bytes())
    return state.hexdigest()[:_SHOWN]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _told(*command: str) -> str:
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()
