"""Environment variables and memory limits of processes that run foreign code."""

from __future__ import annotations

import os
import resource
from pathlib import Path

# what an interpreter, its libraries and a local model need to be found; no key, no token, no name of an account
_KEPT = frozenset(
    (
        *("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "PYTHONHASHSEED"),
        *("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HF_HOME", "HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM"),
    )
)
_OURS = "STROP_"
_CONFINED = "STROP_CONFINED"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_SHARE = 4  # a process may take one part in so many of the machine's memory
_LEAST = 2 << 30  # bytes; below this no library loads
_LARGEST_FILE = 1 << 30  # bytes


def lean_environment() -> dict[str, str]:
    """The environment of such a process."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_OURS)}
    return {**kept, **dict.fromkeys(_THREADS, "1"), _CONFINED: "1"}


def whole_environment(threads: int) -> dict[str, str]:
    """The environment of a process that runs our code."""
    return os.environ | dict.fromkeys(_THREADS, str(threads))


def is_confined() -> bool:
    """Whether this process is one that runs foreign code: it can be killed, and there is nothing to be read in it."""
    return os.environ.get(_CONFINED) == "1"


def limit_memory() -> None:
    """Take no more than a share of the machine's memory, and write no huge file, from here on; children inherit it."""
    # writable memory and not addresses: a GPU's driver reserves many times the addresses it uses
    most = max(memory_bytes() // _SHARE, _LEAST)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))


def memory_bytes() -> int:
    """The machine's memory, or what a container may have of it."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        granted = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return machine
    return min(machine, int(granted)) if granted.isdigit() else machine
