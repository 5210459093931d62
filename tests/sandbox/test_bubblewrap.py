"""Bubblewrap: a shell computes, and reaches nothing that is not its own."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.sandbox import bubblewrap
from strop.sandbox.bubblewrap import Bubble
from strop.sandbox.execution import Allowance, Ending, Ran
from tests.sandbox.escapes import surroundings

needs_bubble = pytest.mark.skipif(bool(bubblewrap.problem()), reason=f"isolation: {bubblewrap.problem()}")
_LONG = Allowance(seconds=20.0)


def shell(text: str, stdin: str = "", allowance: Allowance = _LONG, folder: str = "") -> Ran:
    return asyncio.run(Bubble().run(["sh", "-c", text], stdin, allowance, folder))


@needs_bubble
def test_a_shell_computes_and_says_how_it_ended(tmp_path: Path) -> None:
    found = shell("read x; echo $((x * 2)); echo well >&2; echo kept > note; exit 3", "21\n", folder=str(tmp_path))
    assert (found.ending, found.stdout, found.stderr, found.code) == (Ending.FINISHED, "42\n", "well\n", 3)
    assert (tmp_path / "note").read_text() == "kept\n" and found.seconds < 20


@needs_bubble
@pytest.mark.parametrize(
    "attack",
    [
        "cat {secret} && echo ESCAPED",
        "echo x > {secret} && echo ESCAPED",
        "cat /etc/passwd && echo ESCAPED",
        "ls /root /home/* && echo ESCAPED",
        "kill -0 {parent} && echo ESCAPED",
        "cat /proc/{parent}/environ && echo ESCAPED",
        "touch /usr/bin/x && echo ESCAPED",
        "mount -t tmpfs none /usr && echo ESCAPED",
        "(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo ESCAPED",
        "ls /sys/class/net | grep -v lo && echo ESCAPED",
        '[ -n "$STROP_SECRET" ] && echo ESCAPED',
        "ls /proc | grep -c '^[0-9]' | grep -qv '^[1-6]$' && echo ESCAPED",
        "unshare -U true && echo ESCAPED",
    ],
)
def test_nothing_outside_is_reached(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROP_SECRET", "1")
    with surroundings() as known:
        found = shell(attack.format(**json.loads(known)))
        assert Path(json.loads(known)["secret"]).read_text() == "s3cret"
    assert "ESCAPED" not in found.stdout and not found.is_envs_fault


@needs_bubble
def test_time_output_and_children_end_with_it() -> None:
    begun = time.monotonic()
    mark = f"90{os.getpid()}"
    slow = shell(f"setsid sleep {mark} & sleep {mark}", allowance=Allowance(seconds=0.5))
    assert slow.ending is Ending.TIMEOUT and time.monotonic() - begun < 15
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _read(path)]
    assert not left, "a child outlived it"
    flood = shell("yes", allowance=Allowance(seconds=20.0, output=1000))
    assert flood.ending is Ending.OUTPUT and len(flood.stdout) == 1000


@needs_bubble
def test_folders_that_are_memory_are_bounded_and_nothing_else_is_written(tmp_path: Path) -> None:
    """Two files of 20 MB fit nowhere where 32 MB may be had, though each alone is short enough."""
    text = (
        "for f in / /dev /tmp /dev/shm ~; do head -c 20M /dev/zero >$f/a; head -c 20M /dev/zero >$f/b && echo $f; done"
    )
    small = Allowance(seconds=20.0, memory=32 << 20)
    assert shell(text, allowance=small).stdout == ""
    kept = shell("for f in /tmp /dev/shm ~; do echo 1 >$f/a && cat $f/a; done", allowance=small, folder=str(tmp_path))
    assert kept.stdout == "1\n1\n1\n" and (tmp_path / "a").exists()


@needs_bubble
def test_what_could_not_begin_is_the_envs_fault_and_what_was_killed_is_not() -> None:
    missing = [shell("true", folder="/nowhere"), asyncio.run(Bubble().run(["no-such-program"]))]
    assert [each.ending for each in missing] == [Ending.SETUP] * 2 and all(each.is_envs_fault for each in missing)
    own = [shell(text) for text in ("kill -9 $$", "kill -9 -1", "kill -9 $PPID; exit 1", "kill -9 1; exit 1")]
    assert not any(each.is_envs_fault or each.is_well for each in own), [each.ending for each in own]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_without_the_program_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "no program bwrap" in bubblewrap.problem()
    with pytest.raises(ConfigurationError, match="install it"):
        shell("true")


@needs_bubble
@pytest.mark.skipif(os.getuid() != 0, reason="what root may read and others may not")
def test_what_a_sandbox_could_not_read_is_refused_before_it_begins(tmp_path: Path) -> None:
    """It is no root in there, so a file for its owner alone would be missed in the middle of a run."""
    (tmp_path / "mine").write_text("1")
    tmp_path.chmod(0o700)
    found = asyncio.run(Bubble((str(tmp_path / "mine"),)).run(["cat", str(tmp_path / "mine")]))
    assert found.stdout == "1", "the way to it is not asked for"
    (tmp_path / "mine").chmod(0o600)
    assert "mine may not be read by all users" in bubblewrap.problem((str(tmp_path / "mine"),))
    assert "No such file" in bubblewrap.problem((str(tmp_path / "other"),))
