from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.errors import ConfigurationError
from strop.launch.checks.preflight import check
from strop.recipes.select.one_shot_rlvr import MostVaried, varied
from strop.storage.ledger.ledger import Ledger
from strop.types import Group
from tests.control.samplers.trying import draws, group_of, restored
from tests.test_pipeline import make_run

STEADY, LATE, SOLVED, ONCE = (Arithmetic(1).task(index) for index in range(4))
HISTORY = {
    STEADY: [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]],
    LATE: [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]],
    SOLVED: [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]],
    ONCE: [[1.0, 0.0]],
}


def groups() -> list[Group]:
    """Round after round, as a pilot samples them."""
    rounds = [(task, seen[epoch]) for epoch in range(3) for task, seen in HISTORY.items() if epoch < len(seen)]
    return [group_of(task, rewards, version, version) for version, (task, rewards) in enumerate(rounds)]


def pilot(path: Path, made: list[Group]) -> str:
    """The ledger of a run that dropped every other group."""
    ledger = Ledger(path)
    for group in made:
        ledger.admitted(group.number, group.task, group.version)
        for rollout in group.rollouts:
            rollout.task = group.task
        ledger.finished(group, group if group.number % 2 else None, "dropped", group.version)
    ledger.sync()
    ledger.close()
    return str(path)


def test_a_late_jump_outranks_steady_progress() -> None:
    """Deviations of (0, .5, 1) and (0, 0, 1): 0.408 and 0.471."""
    found = varied(groups())
    assert [task for task, _ in found] == [LATE, STEADY, SOLVED], "and what was tried once is not considered"
    assert [spread for _, spread in found] == pytest.approx([2**0.5 / 3, 6**-0.5, 0.0])


def test_only_own_rollouts_that_count_are_accuracy() -> None:
    made = [group_of(LATE, [0.0, 1.0, 1.0], failed=[1], pruned=[2]), group_of(LATE, [1.0], number=1),
            group_of(LATE, [0.0], number=2, failed=[0])]  # fmt: skip
    assert varied(made) == [(LATE, 0.5)]


def test_the_pilots_ledger_is_read_whole(tmp_path: Path) -> None:
    used = MostVaried(pilot(tmp_path / "ledger.db", groups()), 2)
    assert draws(used, 5) == [LATE, STEADY, LATE, STEADY, LATE], "also what gates dropped"
    assert draws(MostVaried(used.pilot), 3) == [LATE] * 3
    again = restored(MostVaried(used.pilot, 2), used)
    assert draws(again, 4) == draws(used, 4)
    metrics = used.learn([group_of(LATE, [1.0]), group_of(LATE, [1.0]), group_of(STEADY, [1.0]), group_of(LATE, [0.0])])
    assert metrics == pytest.approx({"pilot_spread": (2**0.5 / 3 + 6**-0.5) / 2, "different_share": 0.5})


def test_refuses_pilots_that_say_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="count >= 1, got 0"):
        MostVaried("", 0)
    assert "does not exist" in MostVaried(str(tmp_path / "none.db")).problems(make_run())[0]
    with pytest.raises(sqlite3.OperationalError):
        draws(MostVaried(str(tmp_path / "none.db")), 1)
    assert not (tmp_path / "none.db").exists(), "a pilot is read and never written"
    path = pilot(tmp_path / "ledger.db", groups())
    assert MostVaried(path, 2).problems(make_run()) == []
    assert "only 2 tasks" in MostVaried(path, 3).problems(make_run())[0]
    with pytest.raises(ConfigurationError, match="has 3 tasks that were sampled more than once, need 4"):
        draws(MostVaried(path, 4), 1)
    other = MostVaried(path).problems(make_run(envs=(Countdown(3),)))
    assert len(other) == 1 and "arithmetic:1 is not among the environments of this run" in other[0]


def test_one_task_may_be_under_way_many_times(tmp_path: Path) -> None:
    check(make_run(sampler=MostVaried(pilot(tmp_path / "ledger.db", groups()))))
