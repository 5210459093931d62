"""A machine without the better isolation says so before a program runs; what only the better one gives is refused."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path

import pytest

from strop.environments.bundled.programs import Programs
from strop.environments.code_execution import Trials
from strop.environments.tools.python_notebook import Cells
from strop.errors import ConfigurationError
from strop.filter.rewards.unit_tests import PassedTests
from strop.launch.checks.warnings import warnings_of
from strop.sandbox.kernel_isolation import landlock
from strop.sandbox.kernel_isolation.confine import KernelIsolation, best_isolation, weakness
from strop.sandbox.python import visible_files
from strop.sandbox.python.python_pool import PythonSandbox
from tests.test_pipeline import make_run

needs_isolation = pytest.mark.skipif(best_isolation() is None, reason="isolation: needs seccomp")


@pytest.fixture(params=["namespaces", "Landlock"])
def lacking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A machine on which one of the two is missing, and what it says of that."""
    if request.param == "namespaces":
        monkeypatch.setattr(landlock, "version", lambda: 7)
        monkeypatch.setattr(visible_files, "problem", lambda: "OSError: [Errno 1] a mount namespace: not permitted")
        return "a mount namespace: not permitted"
    monkeypatch.setattr(landlock, "version", lambda: 2)
    return "Landlock 2, and version 3 is needed"


@needs_isolation
def test_a_run_says_it_before_it_begins(lacking: str) -> None:
    run = make_run(envs=(Programs(1),), rewards=(PassedTests(),))
    (told,) = [each for each in warnings_of(run) if "seccomp alone" in each]
    assert lacking in told and "no folder can be writable for them" in told
    plainly = Trials("process")
    plain = make_run(envs=(Programs(1, trials=plainly),), rewards=(PassedTests(trials=plainly),))
    assert not [each for each in warnings_of(plain) if "seccomp alone" in each]
    assert not [each for each in warnings_of(make_run()) if "seccomp alone" in each]


@needs_isolation
def test_whoever_opens_a_sandbox_is_told(lacking: str) -> None:
    with pytest.warns(UserWarning, match="seccomp alone"):
        assert PythonSandbox().isolation is KernelIsolation.NO_FILES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PythonSandbox(KernelIsolation.NO_FILES)  # it was asked for


@needs_isolation
def test_a_folder_is_refused_where_no_program_can_open_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written to"):
        asyncio.run(PythonSandbox(KernelIsolation.NO_FILES).run("print(1)", folder=str(tmp_path)))


def test_a_machine_with_the_better_wall_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 7)
    monkeypatch.setattr(visible_files, "problem", lambda: "")
    assert weakness() == ""
    assert Cells().isolation == "sandbox"
