"""RL post-training of language models: one pipeline in which every published mechanism is a small file."""

import importlib
import os
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strop.api import recipe, train
    from strop.recipes.setting import Setting
    from strop.run import Run

# How long OpenMP's threads spin while they wait for each other before they sleep. Beside an engine in a process of its
# own, a thread that spins keeps the core from the very one it waits for: training with two threads on two cores was
# slower by a tenth with the long spinning that is usual. It is read when torch is first imported, so it is said here.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")

__all__ = ["Run", "Setting", "__version__", "recipe", "resume", "train"]

# imported when they are first asked for: torch alone takes seconds
_HOMES = {
    "recipe": "strop.api",
    "resume": "strop.api",
    "train": "strop.api",
    "Run": "strop.run",
    "Setting": "strop.recipes.setting",
}

try:
    __version__ = version("strop")
except PackageNotFoundError:  # a folder that nobody installed
    __version__ = "unknown"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'strop' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
