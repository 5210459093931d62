"""One kind of process for everybody: asked, heard, killed with all it started, and dead when its parent is."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strop.errors import ConfigurationError, ModelError, StropError
from strop.workers.child import Child, ending
from strop.workers.limits import whole_environment
from strop.workers.pickled_parts import packed, told, unpacked
from strop.workers.untrusted_answers import NoAnswer

ECHO = "tests.workers.echo"


def asked(child: Child, *words: str, seconds: float = 30.0) -> list[Any]:
    """What is answered to each word, or the reason why not."""

    async def ask() -> list[Any]:
        found: list[Any] = []
        for word in words:
            try:
                found.append((await child.ask({"word": word}, {"array": np.arange(3)}, seconds)).head)
            except NoAnswer as nothing:
                found.append(str(nothing))
        await child.kill()
        return found

    return asyncio.run(ask())


def test_questions_are_answered_one_after_the_other_and_arrays_travel() -> None:
    child = Child(ECHO)

    async def ask() -> Any:
        first = await child.ask({"word": "a"}, {"array": np.arange(3.0)})
        second = await child.ask({"word": "b"})
        await child.kill()
        return first.head, first.arrays["array"].tolist(), second.head

    assert asyncio.run(ask()) == ({"said": "a"}, [0.0, 1.0, 2.0], {"said": "b"})
    assert not child.is_alive


def test_what_was_not_asked_for_is_no_answer_to_the_next_question() -> None:
    first, second = asked(Child(ECHO), "twice", "a")
    assert first == {"said": 1}
    assert second == "answered with something that is no message: a message of number 1 where 2 was asked" or (
        second == "answered with something that is no message: a message of number 1 where 1 was asked"
    )


def test_death_and_silence_are_told() -> None:
    assert asked(Child(ECHO), "die") == ["its process died (exit code 5)"]
    assert asked(Child(ECHO), "sleep", seconds=0.2) == ["no answer within 0.2 s"]
    assert [ending(3), ending(-9), ending(128 + 15)] == ["exit code 3", "signal SIGKILL", "signal SIGTERM"]


def test_our_own_processes_see_everything_and_leave_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    (foreign,), (ours,) = asked(Child(ECHO), "environment"), asked(Child(ECHO, whole_environment(3)), "environment")
    assert "MY_TOKEN" not in foreign and ours["MY_TOKEN"] == "secret"
    assert foreign["OMP_NUM_THREADS"] == "1" and ours["OMP_NUM_THREADS"] == "3"
    child = Child(ECHO, whole_environment(1))
    child.tell({"word": "die"})
    assert child.end(10.0) == "exit code 5; it said last:\nthese are my last words"


def test_foreign_code_may_not_say_much_at_once() -> None:
    (told_,) = asked(Child(ECHO), "large")
    assert told_.startswith("answered with something that is no message: a message of 16777")


def test_stacks_may_be_asked_for_before_the_process_is_ready() -> None:
    child = Child(ECHO, whole_environment(1))
    said = child.stacks(seconds=20.0)
    child.tell({"word": "sleep", "id": 1})
    until = time.monotonic() + 20.0
    while "in serve" not in said and time.monotonic() < until:
        said = child.stacks()
    assert "most recent call first" in said and "in serve" in said and child.is_alive
    child.end(0.0)


PARENT = """
import sys, time
from pathlib import Path
from strop.workers.child import Child
from strop.workers.limits import whole_environment
child = Child("tests.workers.echo", whole_environment(1), Path(sys.argv[1]))
child.tell({"word": "sleep", "id": 1})
print(child._process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_it_dies_with_its_parent_and_its_folder_goes_too(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "file").touch()
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(scratch)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    until = time.monotonic() + 20.0
    while b"workers.entry" not in Path(f"/proc/{pid}/cmdline").read_bytes() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.5)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    while (Path(f"/proc/{pid}").exists() or scratch.exists()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists() and not scratch.exists()


def test_parts_travel_and_errors_keep_their_kind() -> None:
    assert unpacked(packed({"a": 1}, "a part", "a process")) == {"a": 1}
    with pytest.raises(ConfigurationError, match=r"a part cannot be sent to a process .*importable file"):
        packed(lambda: None, "a part", "a process")
    assert isinstance(told("ModelError", "no weights", "it"), ModelError)
    other = told("SystemExit", "3", "the engine's process")
    assert type(other) is StropError and str(other) == "the engine's process failed: SystemExit: 3"
