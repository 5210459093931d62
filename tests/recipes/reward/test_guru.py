"""Guru's filter: exactly the tasks that a strong model solves at times and a weak one not always."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Checked
from strop.recipes import parameters_of
from strop.recipes.classics.pocket import pocket
from strop.recipes.environments import parse_envs
from strop.recipes.reward.guru import PassRateBand, guru, rates
from strop.recipes.setting import Setting
from strop.storage.ledger.ledger import Ledger
from strop.types import Group, Message, Origin, Task
from tests.control.asking import group_of

ENV = Arithmetic(1)
TASKS = [ENV.task(index) for index in range(6)]
AGAIN = Task(TASKS[1].messages, TASKS[1].answer, "arithmetic", 1, id="again")  # the same text under another id
# right rollouts of four, at the tasks 0 to 5: the weak run has not tried 4, the strong one not 5
WEAK, STRONG = [4, 3, 0, 0, None, 2], [4, 4, 0, 1, 2, None]


def ledger(path: Path, rights: list[int | None]) -> str:
    made = Ledger(path)
    groups = [
        group_of(task, [float(n < right) for n in range(4)], number)
        for number, (task, right) in enumerate(zip(TASKS, rights, strict=True))
        if right is not None
    ]
    groups.append(group_of(AGAIN, [1.0, 0.0], 9))
    for group in groups:
        made.admitted(group.number, group.task, 0)
        made.finished(group, group, "", 0, [])
    made.sync()
    made.close()
    return str(path)


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    return ledger(folder / "weak.db", WEAK), ledger(folder / "strong.db", STRONG)


def drawn(sampler: PassRateBand, count: int) -> list[str]:
    return [sampler.next(0, Counts()).id for _ in range(count)]


@pytest.mark.parametrize(("low", "high"), [(1e-5, 0.9), (0.25, 0.9), (0.2, 0.75), (0.0, 1.0)])
def test_exactly_those_in_the_band(ledgers: tuple[str, str], low: float, high: float) -> None:
    sampler = PassRateBand(*ledgers, low, high)
    wanted = [
        task.id
        for task, weak, strong in zip(TASKS, WEAK, STRONG, strict=True)
        if weak is not None and strong is not None and strong / 4 > low and weak / 4 < high
    ]
    wanted += [AGAIN.id] if TASKS[1].id not in wanted and low < 0.5 < high else []
    assert sorted(drawn(sampler, len(wanted))) == sorted(wanted), "each once before any comes again"
    assert sampler.learn([]) == {"in_band": len(wanted) / 5, "unrated": 2}


def test_orders_differ_and_go_on_after_a_restart(ledgers: tuple[str, str]) -> None:
    whole = drawn(PassRateBand(*ledgers, seed=1), 40)
    assert len({tuple(whole[start : start + 2]) for start in range(0, 40, 2)}) == 2, "two tasks, in both orders"
    assert whole != drawn(PassRateBand(*ledgers, seed=2), 40)
    first, second = PassRateBand(*ledgers, seed=1), PassRateBand(*ledgers, seed=1)
    drawn(first, 7)
    second.restore(first.state())
    assert drawn(second, 33) == whole[7:]


def test_rates_are_of_the_policys_own_rollouts_over_all_groups() -> None:
    def helped(group: Group) -> Group:
        group.rollouts[0].origin = Origin.GUIDED
        return group

    first, second = group_of(TASKS[0], [1.0, 0.0, 0.0]), group_of(TASKS[0], [1.0])
    assert rates([first, second])[TASKS[0].id] == (TASKS[0], 0.5), "two of four, not the mean of 1/3 and 1"
    assert rates([helped(group_of(TASKS[0], [1.0, 0.0]))])[TASKS[0].id][1] == 0
    assert rates([helped(group_of(TASKS[0], [1.0]))]) == {}, "nothing is known of it"


def test_what_cannot_work_is_refused(ledgers: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"got 0\.5 and 0"):
        PassRateBand(*ledgers, 0.5, 0.0)
    with pytest.raises(ConfigurationError, match=r"none of 5 tasks with pass rates in both .* has a rate above"):
        PassRateBand(*ledgers, 0.9, 0.1).next(0, Counts())
    run = guru(Setting(env="countdown:3"), weak=str(tmp_path), strong=str(tmp_path))
    assert isinstance(run.sampler, PassRateBand) and len(run.sampler.problems(run)) == 2, "there are no such runs"
    run.sampler = PassRateBand(*ledgers)
    assert run.sampler.problems(run) == [
        "weak and strong are runs on other tasks: arithmetic:1 is not among the environments of this run"
    ]
    assert PassRateBand(*ledgers).problems(guru(Setting(env="arithmetic:1"), weak="a", strong="b")) == []


def test_six_domains_and_sixteen_rollouts_are_the_default() -> None:
    asked = parameters_of(guru)
    envs = parse_envs(str(asked["env"].default))
    assert len({env.name for env in envs}) == 6 and asked["group_size"].default == 16
    told = re.search(r"`pocket` with learning_rate=([0-9e.-]+)", guru.__doc__ or "")
    assert told is not None and pocket(Setting(learning_rate=float(told.group(1)))).steps > 0, "what it says works"


def test_a_task_of_another_source_is_refused_and_never_paid_0() -> None:
    strange = Task((Message("user", "?"),), "1", "elsewhere")
    with pytest.raises(ConfigurationError, match="no environment 'elsewhere'"):
        Checked((ENV,))(group_of(strange, [0.0]))
