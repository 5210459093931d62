"""The sandbox: what comes back, and whose fault it was; attacks are in `test_attacks.py`."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.sandbox.execution import Allowance, Ending, Ran
from strop.sandbox.kernel_isolation.confine import KernelIsolation, best_isolation, isolation_with
from strop.sandbox.python.python_pool import PythonSandbox
from tests.sandbox.escapes import SECRET

_ROOT = Path(__file__).parents[2]
_NOBODY = 65534
pytestmark = pytest.mark.skipif(
    best_isolation() is not KernelIsolation.FILES, reason="isolation: needs Linux on x86-64 with Landlock"
)


def ran(*programs: str, stdin: str = "", **allowance: float) -> list[Ran]:
    async def all_of_them() -> list[Ran]:
        sandbox = PythonSandbox()
        found = [await sandbox.run(each, stdin, Allowance(**allowance)) for each in programs]  # type: ignore[arg-type]
        await sandbox.close()
        return found

    return asyncio.run(all_of_them())


def test_what_comes_back() -> None:
    plain, failed, quiet = ran("print(input() * 2)", "import sys; print('é'); sys.exit(3)", "1 / 0", stdin="ab\n")
    assert (plain.ending, plain.stdout, plain.stderr, plain.code, plain.is_well) == (
        Ending.FINISHED,
        "abab\n",
        "",
        0,
        True,
    )
    assert (failed.ending, failed.stdout, failed.code, failed.is_well) == (Ending.FINISHED, "é\n", 3, False)
    assert (
        quiet.code == 1 and quiet.stderr.endswith("ZeroDivisionError: division by zero\n") and not quiet.is_envs_fault
    )
    assert 0 < plain.seconds < 20 and plain.memory > 1 << 20


def test_two_runs_are_the_same_in_every_bit() -> None:
    """Sets keep their order and probability its numbers, from one interpreter to the next."""
    program = "import random; print({str(n) for n in range(50)}, random.random())"
    one, other, again = ran(program)[0], *ran(program, program)
    assert one.stdout == other.stdout == again.stdout != ""


def test_output_is_cut_where_it_may_end() -> None:
    (flood,) = ran("while True: print('x' * 100)", output=1000)
    assert flood.ending is Ending.OUTPUT and len(flood.stdout) == 1000


def test_a_program_may_write_in_its_own_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    program = f"open('a', 'w').write('1'); print(open('a').read()); open({str(tmp_path / 'b')!r}, 'w')"

    async def within() -> Ran:
        sandbox = PythonSandbox(KernelIsolation.FILES)
        found = await sandbox.run(program, folder=str(tmp_path / "mine"))
        await sandbox.close()
        return found

    found = asyncio.run(within())
    assert found.stdout == "1\n" and "FileNotFoundError" in found.stderr  # it is not even there
    assert (tmp_path / "mine" / "a").read_text() == "1" and not (tmp_path / "b").exists()


def test_a_watcher_that_is_gone_is_the_envs_fault_and_the_next_program_has_another() -> None:
    async def lost() -> list[Ran]:
        sandbox = PythonSandbox()
        await sandbox.run("pass")
        os.killpg(sandbox._idle[0].pid, signal.SIGKILL)
        found = [await sandbox.run("print(1)"), await sandbox.run("print(2)")]
        await sandbox.close()
        return found

    gone, there = asyncio.run(lost())
    assert gone.ending is Ending.LOST and gone.is_envs_fault and there.stdout == "2\n"


_ORPHAN = """
import os, time
from strop.sandbox.python.warm_interpreter import tie
middle = os.fork()
if not middle:
    own = os.getpid()
    if not os.fork():
        while os.getppid() == own:
            time.sleep(0.001)
        tie(own)
        print("lives", flush=True)
    os._exit(0)
os.waitpid(middle, 0)
"""


def test_who_was_forked_by_a_process_that_is_gone_ends() -> None:
    """Between a fork and the wish to end with the parent it may die; nobody would end such a program."""
    done = subprocess.run([sys.executable, "-c", _ORPHAN], cwd=_ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_landlock_that_lets_files_be_emptied_is_no_wall() -> None:
    """Before version 3 a file that may be read can be opened to be truncated: then no file is opened at all."""
    assert [isolation_with(version) for version in range(5)] == [KernelIsolation.NO_FILES] * 3 + [
        KernelIsolation.FILES
    ] * 2


def test_nobody_runs_a_program_without_its_sandbox() -> None:
    """A folder that is not there: the isolation cannot be set up, so the program is not run, and it is not to blame."""

    async def without() -> Ran:
        sandbox = PythonSandbox(KernelIsolation.FILES)
        found = await sandbox.run("print('ran')", folder="/nowhere")
        await sandbox.close()
        return found

    found = asyncio.run(without())
    assert found.ending is Ending.SETUP and found.is_envs_fault and found.stdout == ""
    with pytest.raises(ConfigurationError, match="no isolation here that a program cannot leave"):
        asyncio.run(PythonSandbox(None).run("print(1)"))
    with pytest.raises(ConfigurationError, match="at_once >= 1, got 0"):
        PythonSandbox(at_once=0)
    with pytest.raises(ConfigurationError, match="some time, memory and output, got 0 s"):
        Allowance(seconds=0)


def test_no_process_knows_another_program() -> None:
    """What ran before stands nowhere in the memory of the next one."""
    mark = "m" + SECRET * 3
    look = (
        "import gc\n"
        "dicts = [each for each in gc.get_objects() if isinstance(each, dict)]\n"
        f"seen = [each for each in dicts if '{mark[1:]}' in str(each.get('mark'))]\n"
        "print(len(seen), 'mark' in globals())"
    )
    _, found = ran(f"mark = '{mark}'", look)
    assert found.stdout == "0 False\n"
