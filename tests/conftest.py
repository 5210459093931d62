"""What all tests stand on."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.skipped import pytest_sessionfinish, pytest_terminal_summary  # noqa: F401 (hooks of pytest)

ROOT = Path(__file__).parent.parent
MEMORY = Path("/dev/shm")
STATE = tempfile.TemporaryDirectory(prefix="strop-tests-")  # where keys of tests lie, and not in anybody's home
ROOM = 1 << 32  # bytes: the folders of a test go when it passes, so that all together never need as much


def pytest_configure() -> None:
    """Folders of tests lie in memory where there is room: each checkpoint waits for the disk ten times."""
    # a busy machine is no failure, and CI tries other examples each time, too
    settings.register_profile("strop", settings.default, deadline=None, derandomize=False)
    settings.load_profile("strop")
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker has that of the process that started it
        os.environ["XDG_STATE_HOME"] = STATE.name


def pytest_unconfigure() -> None:
    STATE.cleanup()


def pytest_collection(session: pytest.Session) -> None:
    """Each worker begins to import at another place: what one has compiled, the others read from the cache."""
    if "PYTEST_XDIST_WORKER_COUNT" not in os.environ or session.config.args != session.config.getini("testpaths"):
        return
    names = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))
    first = len(names) * int(os.environ["PYTEST_XDIST_WORKER"][2:]) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for name in names[first:] + names[:first]:
        with suppress(Exception, pytest.skip.Exception):  # collection says what is wrong with it
            importlib.import_module(".".join(name.with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first: begun at the end, one process would work on it while the others have nothing."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Libraries and tests are half a million objects that stay: each run that is launched would look through them."""
    gc.collect()
    gc.freeze()
    gc.disable()


def pytest_runtest_teardown() -> None:
    """Garbage is looked for after each test, among what is new."""
    gc.collect(1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny model with the tokenizer of the bundled one."""
    from tests.tiny_models import save_pocket_like

    return save_pocket_like(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def reader(model: Path) -> Any:
    """The model itself, as transformers loads it."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(model, attn_implementation="eager").eval()
