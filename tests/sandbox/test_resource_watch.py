"""A sandbox is looked at a little after its start: whoever ends before costs no thread, whoever goes on is watched."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from strop.sandbox import bubblewrap
from strop.sandbox.bubblewrap import Bubble
from strop.sandbox.execution import Allowance, Ending
from strop.sandbox.kernel_isolation import seccomp, syscalls
from strop.sandbox.resource_watch import Overseer
from tests.sandbox.users import everybodys_python

needs_bubble = pytest.mark.skipif(bool(bubblewrap.problem()), reason=f"isolation: {bubblewrap.problem()}")
_PIECES = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        kept = bytearray(20 << 20)
        break
time.sleep(20)
"""
_FILLS = (everybodys_python(), "-I", "-c", _PIECES)  # each process alone takes less than may be had
_LONG = Allowance(seconds=15.0, memory=64 << 20)


def _overseer(written: bytes = b"") -> tuple[Overseer, list[str], int]:
    (status, told), killed = os.pipe(), list[str]()
    os.write(told, written)
    return Overseer(status, 1 << 20, None, lambda: killed.append("killed")), killed, told


def test_what_ends_at_once_needs_no_thread() -> None:
    first, _, told = _overseer()  # whoever wakes all others has a thread of its own
    os.close(told)
    first.release()
    before = {each.ident for each in threading.enumerate()}
    overseer, _, told = _overseer(b'{ "child-pid": 1 }\n{ "exit-code": 0 }\n')
    assert {each.ident for each in threading.enumerate()} == before
    os.close(told)
    overseer.release()


def test_what_cannot_be_watched_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there may be no more threads."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    first, _, told = _overseer()
    os.close(told)
    first.release()
    overseer, killed, told = _overseer()
    monkeypatch.setattr(threading.Thread, "start", start)
    overseer.begin()
    monkeypatch.undo()
    os.close(told)
    overseer.release()
    assert killed == ["killed"]
    ran = overseer.judged(bubblewrap.Ran(Ending.KILLED))
    assert ran.ending is Ending.SETUP
    assert "can't start new thread" in ran.stderr


@needs_bubble
def test_several_at_once_are_each_watched() -> None:
    async def ran() -> list[Ending]:
        commands = (_FILLS, ("echo", "1"), _FILLS, ("sleep", "0.2"))
        runs = (Bubble().run(command, "", _LONG) for command in commands)
        return [each.ending for each in await asyncio.gather(*runs)]

    assert asyncio.run(ran()) == [Ending.MEMORY, Ending.FINISHED, Ending.MEMORY, Ending.FINISHED]


@needs_bubble
def test_a_fork_watches_by_itself() -> None:
    """The thread that begins all others is not in a process that was forked since."""

    async def ran() -> Ending:
        return (await Bubble().run(_FILLS, "", _LONG)).ending

    assert asyncio.run(ran()) is Ending.MEMORY
    child = os.fork()
    if not child:
        try:
            os._exit(0 if asyncio.run(ran()) is Ending.MEMORY else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@needs_bubble
@pytest.mark.skipif(os.geteuid() != 0, reason="isolation: only root detaches mounts")
def test_mounts_of_the_machines_system_folder_are_not_carried_along() -> None:
    """They are hidden in any case; each would be copied twice and listed for each kind of isolation."""
    text = "cut -d' ' -f5 /proc/self/mountinfo"
    seen = asyncio.run(Bubble().run(["sh", "-c", text])).stdout.split()
    assert not [place for place in seen if place.startswith("/sys")]


def test_a_file_below_the_system_folder_is_still_seen() -> None:
    if bubblewrap.problem() or not Path("/sys/kernel/mm").is_dir():
        pytest.skip("isolation: needs bubblewrap and a system folder")
    sandbox = Bubble(seen=("/sys/kernel/mm",))
    ran = asyncio.run(sandbox.run(["ls", "/sys/kernel/mm"]))
    assert ran.is_well, ran
    assert ran.stdout


_FILTERS = {
    "computing": (seccomp.computing(True, True), syscalls.COMPUTING | syscalls.READING | syscalls.WRITING),
    "all kinds": (seccomp.all_kinds(True), {}),
}


def _answer(filter_: bytes, number: int, arguments: tuple[int, ...] = (0,) * 6) -> tuple[int, int]:
    """What the filter answers, and after how many steps: the kernel's machine, in so far as it is used."""
    rules, place, held, steps = list(seccomp._RULE.iter_unpack(filter_)), 0, 0, 0
    words = {0: number, 4: seccomp._ARCHITECTURE}
    words |= {16 + 8 * n: value & 0xFFFFFFFF for n, value in enumerate(arguments)}
    words |= {20 + 8 * n: value >> 32 for n, value in enumerate(arguments)}
    while True:
        code, yes, no, value = rules[place]
        steps += 1
        if code == seccomp._RETURN:
            return value, steps
        if code == seccomp._LOAD:
            held, place = words[value], place + 1
            continue
        is_so = {
            seccomp._EQUAL: held == value,
            seccomp._ANY_BIT: bool(held & value),
            seccomp._AT_LEAST: held >= value,
        }[code]
        place += 1 + (yes if is_so else no)


def test_each_call_is_answered_as_listed() -> None:
    """Without arguments that are tested; those have tests by attack."""
    rules, allowed = _FILTERS["computing"]
    for number in set(range(600)) - syscalls.COMPUTING_IF.keys() - syscalls.WRITING_IF.keys():
        if number in allowed.values():
            wanted = seccomp._ALLOW
        else:
            error = 38 if number in syscalls.ABSENT.values() else 1
            wanted = seccomp._FAIL | error
        assert _answer(rules, number)[0] == wanted, number
    rules, _ = _FILTERS["all kinds"]
    for number in set(range(600)) - syscalls.ALL_KINDS_IF.keys():
        error = 1 if number in syscalls.DENIED.values() else 38 if number in syscalls.MISSING.values() else 0
        assert _answer(rules, number)[0] == (seccomp._FAIL | error if error else seccomp._ALLOW), number
    assert _answer(rules, 0x40000001)[0] == seccomp._KILL


def test_arguments_decide_where_they_are_tested() -> None:
    rules, _ = _FILTERS["all kinds"]
    assert _answer(rules, 41, (2, 1, 6, 0, 0, 0))[0] == seccomp._ALLOW  # socket: IPv4, TCP
    assert _answer(rules, 41, (40, 1, 0, 0, 0, 0))[0] != seccomp._ALLOW  # vsock
    assert _answer(rules, 56, (0x10000000, 0, 0, 0, 0, 0))[0] != seccomp._ALLOW  # clone: a user namespace
    assert _answer(rules, 56, (0x11, 0, 0, 0, 0, 0))[0] == seccomp._ALLOW
    assert _answer(rules, 302, (1, 0, 0, 0, 0, 0))[0] != seccomp._ALLOW  # prlimit64 of another


@pytest.mark.parametrize("name", _FILTERS)
def test_the_filter_answers_each_call_in_few_steps(name: str) -> None:
    """The kernel tries all calls whenever it is raised."""
    steps = [_answer(_FILTERS[name][0], number)[1] for number in range(470)]
    assert max(steps) <= 40, max(steps)
    assert sum(steps) / len(steps) < 20
