"""Whatever a reward does, the rollouts it breaks fail, the others are paid, and no process stays."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strop.errors import RewardError
from strop.filter.scoring import Scorer, Scores, reward_names
from strop.roles import Reward
from strop.types import Group, Message, Outcome, Rollout, Task, Turn
from tests.filter.foul import (
    FORGED,
    Counts,
    DiesOpening,
    NeverOpens,
    Obeys,
    ObeysInline,
    ObeysRelative,
    Returns,
    WhoAmI,
)

TASK = Task((Message("user", "1+1="),), "2", "test")


def group_of(*completions: str) -> Group:
    return Group(0, TASK, [Rollout(f"0-{i}", TASK, (_turn(r),), Outcome.FINISHED) for i, r in enumerate(completions)])


def _turn(completion: str) -> Turn:
    none: Any = np.zeros(0)
    return Turn(none, none, none, none, Message("assistant", completion))


def scored(rewards: Sequence[Any], *groups: Group, **more: Any) -> list[Scores]:
    """The groups one after the other; afterwards no process of a worker may be left."""

    async def score() -> list[Scores]:
        scorer = Scorer(rewards, **more)
        try:
            return [await scorer(group) for group in groups]
        finally:
            await scorer.close()

    scores = asyncio.run(score())
    assert worker_processes() == []
    return scores


def worker_processes(parent: int | None = None) -> list[int]:
    """Living processes started, however indirectly, by `parent` (this process)."""
    needle = f"STROP_TEST_PARENT={parent or os.getpid()}".encode()
    return [pid for pid in _pids() if needle in _read(pid, "environ").split(b"\0")]


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


@pytest.fixture(autouse=True)
def _scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tells our workers from those of other test runs on this machine."""
    monkeypatch.setenv("STROP_TEST_PARENT", str(os.getpid()))


def outcomes(group: Group) -> list[str | float]:
    return [a.error if a.outcome is Outcome.FAILED else a.reward for a in group.rollouts]


def test_rewards_are_weighed_and_added_under_their_names() -> None:
    group = group_of("0.5", "2")
    (scores,) = scored([Obeys(weight=2.0), Obeys(weight=-1.0), Counts(weight=0.1)], group)
    assert scores == Scores(2) and scores.failed == 0 and not scores.is_broken
    assert group.rollouts[0].rewards == {"obeys": 0.5, "obeys_2": 0.5, "counts": 2.0}
    assert [a.reward for a in group.rollouts] == pytest.approx([0.7, 2.2])


def test_names_are_snake_case_or_the_rewards_own() -> None:
    @dataclass
    class Named(Reward):
        name: str = "exact"
        weight: float = 1.0

        def __call__(self, group: Group) -> list[float]:
            return []

    assert reward_names([ObeysInline(), Named(), Named(), ObeysInline(), Named()]) == [
        "obeys_inline",
        "exact",
        "exact_2",
        "obeys_inline_2",
        "exact_3",
    ]


FAULTS = {
    "oops": "ValueError: could not convert string to float: 'oops' (foul.py, line 112)",
    "nan": "returned nan, need a finite number",
    "inf": "returned -inf, need a finite number",
    "none": "returned None, need a number",
    "text": "returned str '1.0', need a number",
}


@pytest.mark.parametrize("reward", [Obeys(), ObeysInline()])
def test_only_the_guilty_rollout_fails(reward: Any) -> None:
    name = reward_names([reward])[0]
    for said, fault in FAULTS.items():
        group = group_of("1", said, "0")
        (scores,) = scored([reward], group)
        assert outcomes(group) == [1.0, f"reward {name}: {fault}", 0.0]
        assert scores.failed == 1 and list(scores.reasons) == [f"reward {name}: {fault}"] and not scores.is_broken
        assert group.rewards.tolist() == [1.0, 0.0], "the baseline of the siblings does not move"
        assert group.rollouts[1].rewards == {} and group.rollouts[1].reward == 0.0


DEATHS = {
    "exit": "its process died (exit code 3)",
    "leave": "its process died (exit code 4)",
    "kill": "its process died (signal SIGKILL)",
    "spawn": "left a process running",
    "orphan": "left a process running",
    "die and leave": "its process died (exit code 3)",
}


@pytest.mark.parametrize("said", DEATHS)
def test_a_reward_that_dies_or_leaves_processes_fails_only_the_guilty(said: str) -> None:
    group, later = group_of("1", said, "0"), group_of("3")
    scored([Obeys()], group, later)
    assert outcomes(group) == [1.0, f"reward obeys: {DEATHS[said]}", 0.0]
    assert outcomes(later) == [3.0], "the next group finds a worker again"


@pytest.mark.parametrize("said", ["hang", "spin", "spawn and hang"])
def test_a_reward_that_hangs_is_killed_at_its_deadline_and_its_completion_counts_as_wrong(said: str) -> None:
    group = group_of("1", said)
    begun = time.monotonic()
    (scores,) = scored([Obeys()], group, seconds=1.0)
    assert outcomes(group) == [1.0, 0.0] and scores.failed == 0 and scores.overruns == 1
    assert group.rollouts[1].error.startswith("reward obeys: no answer within 1 s, twice")
    assert time.monotonic() - begun < 20.0


def test_a_hanging_reward_does_not_hold_up_other_groups() -> None:
    async def both() -> list[str]:
        scorer, ended = Scorer([Obeys()], seconds=3.0), list[str]()

        async def one(name: str, group: Group) -> None:
            await scorer(group)
            ended.append(name)

        await asyncio.gather(one("hangs", group_of("hang")), one("quick", group_of("1")), one("quick", group_of("2")))
        await scorer.close()
        return ended

    assert asyncio.run(both()) == ["quick", "quick", "hangs"]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "returned None, need a list of 2 numbers"),
        ([1.0], "returned 1 values for 2 rollouts"),
        ([1.0, 2.0, 3.0], "returned 3 values for 2 rollouts"),
        (1.0, "returned float 1.0, need a list of 2 numbers"),
        ([None, None], "returned None, need a number"),
    ],
)
def test_a_broken_contract_is_told_apart_from_bad_rollouts(value: Any, fault: str) -> None:
    group = group_of("1", "2")
    (scores,) = scored([Returns(value)], group)
    assert all(rollout.outcome is Outcome.FAILED and fault in rollout.error for rollout in group.rollouts)
    assert scores.failed == scores.breaches == scores.rollouts == 2 and scores.is_broken


def test_numbers_of_every_kind_are_taken() -> None:
    group = group_of("1", "2", "3")
    scored([Returns((True, np.float32(0.5), np.int64(2)))], group)
    assert outcomes(group) == [1.0, 0.5, 2.0]


def test_a_failed_comparison_fails_all_it_compared() -> None:
    group = group_of("1", "oops")
    scored([ObeysRelative()], group)
    assert outcomes(group) == ["reward obeys_relative: " + FAULTS["oops"]] * 2


def test_those_who_compare_never_see_failed_rollouts() -> None:
    group = group_of("1", "nan", "2", "0")
    group.rollouts[3].outcome = Outcome.FAILED
    (scores,) = scored([Counts(), Obeys()], group)
    assert [rollout.rewards for rollout in group.rollouts] == [
        {"counts": 2.0, "obeys": 1.0},
        {},
        {"counts": 2.0, "obeys": 2.0},
        {},
    ]
    assert scores.rollouts == 3 and scores.failed == 1


def test_a_group_that_failed_already_costs_nothing() -> None:
    group = group_of("1")
    group.rollouts[0].outcome, group.rollouts[0].error = Outcome.FAILED, "environment: gone"
    assert scored([Obeys(), Counts()], group) == [Scores(0)]
    assert group.rollouts[0].error == "environment: gone"


def test_what_a_reward_prints_does_not_reach_the_protocol() -> None:
    group = group_of("print", "1")
    scored([Obeys()], group)
    assert outcomes(group) == [0.5, 1.0]


def test_the_worker_lives_on_apart_with_one_thread() -> None:
    first, second = group_of("", "", ""), group_of("", "", "")
    scored([WhoAmI()], first, second)
    pid, threads, leads_session = outcomes(first)
    assert pid == outcomes(second)[0] != os.getpid() and threads == leads_session == 1.0


def test_a_reward_that_raises_keeps_its_worker() -> None:
    first, raising, second = group_of("", "", ""), group_of("", ""), group_of("", "", "")
    scores = scored([WhoAmI()], first, raising, second)
    assert outcomes(first)[0] == outcomes(second)[0] and scores[1].is_broken


def test_memory_is_limited() -> None:
    group = group_of("eat", "1")
    scored([Obeys()], group)
    assert outcomes(group) == [0.0, 1.0] and "MemoryError" in group.rollouts[0].error


def test_gigabytes_are_written_nowhere() -> None:
    group = group_of("write", "flood", "1")
    scored([Obeys()], group)
    assert outcomes(group) == ["reward obeys: OSError: [Errno 27] File too large (foul.py, line 156)", 0.5, 1.0]


def test_a_worker_sees_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_API_KEY", "OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "ANYTHING"):
        monkeypatch.setenv(name, "secret")
    group = group_of("secret", "episode")
    scored([Obeys()], group)
    seen, count = outcomes(group)
    assert seen == 0.0 and isinstance(count, float) and count <= 20


def test_whatever_comes_through_the_pipe_fails_the_rollout_and_nothing_else() -> None:
    forged, later = {said: group_of(f"forge {said}") for said in FORGED}, group_of("3")
    scored([Obeys()], *forged.values(), later)
    for said, group in forged.items():
        (fault,) = outcomes(group)
        assert isinstance(fault, str) and re.match(r"reward obeys: answered .{3,200}$", fault), (said, fault)
    assert outcomes(later) == [3.0]


def test_a_message_in_the_right_form_is_taken() -> None:
    """Whoever holds the worker can say any score: only its form is checked, and that is what the forged ones lack."""
    group = group_of("forge honest")
    scored([Obeys()], group)
    assert outcomes(group) == [0.25]


def test_a_reward_that_cannot_be_loaded_stops_the_run() -> None:
    @dataclass
    class Local(Reward):
        weight: float = 1.0

        def __call__(self, group: Group) -> list[float]:
            return []

    with pytest.raises(RewardError, match=r"Local cannot be sent .* importable file"):
        scored([Local()], group_of("1"))
    with pytest.raises(RewardError, match=r"NeverOpens cannot be loaded .*OSError: no such grammar"):
        scored([Obeys(), NeverOpens()], group_of("1"))
    assert worker_processes() == []


def test_a_worker_killed_while_it_starts_is_started_again(tmp_path: Path) -> None:
    group = group_of("1")
    scored([DiesOpening(str(tmp_path), 2)], group)
    assert outcomes(group) == [1.0] and len(list(tmp_path.iterdir())) == 2
    with pytest.raises(RewardError, match=r"did not start, 3 times: its process died \(signal SIGKILL\); its"):
        scored([DiesOpening(str(tmp_path), 9)], group_of("1"))


def test_cancelled_scoring_leaves_no_process() -> None:
    async def cancel() -> None:
        scorer = Scorer([Obeys()])
        scoring = asyncio.create_task(scorer(group_of("hang")))
        while not worker_processes():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        scoring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await scoring
        await scorer.close()

    asyncio.run(cancel())
    assert worker_processes() == []


ORPHANING = """
import asyncio, os, sys
os.environ["STROP_TEST_PARENT"] = str(os.getpid())
from strop.filter.scoring import Scorer
from tests.filter.foul import Obeys
from tests.filter.test_scoring import group_of
async def main():
    scorer = Scorer([Obeys()], seconds=60.0)
    await scorer(group_of("1"))
    print("ready", flush=True)
    await scorer(group_of(sys.argv[1])) if len(sys.argv) > 1 else await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("arguments", [[], ["hang"], ["spawn and hang"]])
def test_no_worker_outlives_its_parent(arguments: list[str]) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHANING, *arguments], stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent.parent
    )
    assert parent.stdout is not None and parent.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    assert len(worker_processes(parent.pid)) == (3 if "spawn and hang" in arguments else 2)  # with the keeper
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10.0
    while worker_processes(parent.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert worker_processes(parent.pid) == []
