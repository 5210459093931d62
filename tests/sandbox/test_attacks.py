"""Sandboxes under attack: a part of the campaign as root and as nobody, beside its control; all: `make attack`."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter

import pytest

from strop.sandbox import bubblewrap
from strop.sandbox.execution import Ending, Ran
from strop.sandbox.kernel_isolation.confine import KernelIsolation, best_isolation
from tests.sandbox import campaign
from tests.sandbox.attacks import ATTACKS, Against
from tests.sandbox.escapes import chosen
from tests.sandbox.outside import Outside
from tests.sandbox.runs import runs

_EVERY = 50
# those that won in one of the sandboxes once, and hold nothing for long
_FOUND = (
    *("core_pattern, to write", "keys: read a key", "keys: add a key$", "kernel: rings$", "faults of its own"),
    *("sockets of the host", "trace its parent", "limits of its parent, set", "sizes: stat$", "sizes: readlink$"),
    *("packages beside the interpreter", "processes: limits of it, read", "processes: clock of it"),
    "program of another user",
)
needs_landlock = pytest.mark.skipif(
    best_isolation() is not KernelIsolation.FILES, reason="isolation: needs Linux on x86-64 with Landlock"
)
needs_bubble = pytest.mark.skipif(bool(bubblewrap.problem()), reason=f"isolation: {bubblewrap.problem()}")


def test_attacks_are_many_and_each_has_a_name() -> None:
    assert len({attack.key for attack in ATTACKS}) == len(ATTACKS) >= 700
    of_python = [attack for attack in ATTACKS if Against.PYTHON in attack.against]
    of_commands = [attack for attack in ATTACKS if Against.COMMANDS in attack.against]
    assert len(of_python) >= 600 and len(of_commands) >= 550
    assert min(Counter(attack.family for attack in ATTACKS).values()) >= 4


@needs_landlock
@needs_bubble
@pytest.mark.parametrize("user", campaign.users())
def test_attacks_that_win_without_sandbox_win_in_no_sandbox(user: str) -> None:
    if not campaign.interpreter(user):
        pytest.skip(f"isolation: there is no Python of at least 3.11 that {user} may start")
    done = campaign.campaign(every=_EVERY, is_fast=True, who=[user])
    assert done.breaches() == []
    assert all(row["tried"] >= 10 and row["won in the control"] >= 0.7 * row["tried"] for row in done.rows()), (
        done.rows()
    )


@needs_landlock
@needs_bubble
@pytest.mark.skipif(os.geteuid() != 0, reason="isolation: some were open to root alone")
def test_what_won_in_a_sandbox_once_wins_no_more() -> None:
    done = campaign.campaign(name="|".join(_FOUND), who=["root"])
    assert done.breaches() == []
    assert min(len(done.counted("root", name)) for name in ("files", "no files", "bubble")) >= 10


@needs_landlock
@needs_bubble
def test_no_run_among_hostile_ones_is_lost_or_misjudged() -> None:
    done = asyncio.run(runs(120, seed=random.randrange(1 << 30)))
    assert done.wrong == [] and done.endings.total() == 120


def test_evidence_is_seen_from_outside() -> None:
    """A program that does nothing has won nothing; each trace of one that did is found."""
    outside, attack = Outside(), chosen("control")[0]
    try:
        assert outside.breaches(attack, Ran(Ending.FINISHED, "all is well")) == []
        assert outside.breaches(attack, Ran(Ending.FINISHED, f"x{outside.token}")) == ["it told a secret"]
        assert outside.breaches(attack, Ran(Ending.FINISHED, f"WON {outside.nonce}")) == ["the kernel granted it"]
        (outside.canaries.folder / "secret").write_text("x")
        assert outside.breaches(attack, Ran(Ending.FINISHED)) == ["file secret"]
    finally:
        outside.close()
