from __future__ import annotations

import json
from pathlib import Path

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.needs import unmet
from strop.errors import ConfigurationError, DataError
from strop.recipes.select.dereason import SCORED, TaskScoreRange
from strop.roles import Environment
from tests.control.samplers.trying import Noting, draws, group_of, prompt, restored
from tests.test_pipeline import make_run

ENVS = (Arithmetic(3), Arithmetic(4), Arithmetic(5), Countdown(3))  # worked solutions of 1, 2, 3 and 2 steps


def where(envs: tuple[Environment, ...] = ENVS, **bounds: float | str) -> TaskScoreRange:
    return TaskScoreRange(Uniform(envs), envs, **bounds)  # type: ignore[arg-type]


def test_scores_are_steps_of_the_worked_solution() -> None:
    assert [where().score(env.task(7)) for env in ENVS] == [1.0, 2.0, 3.0, 2.0]


def test_two_that_meet_at_a_bound_part_all_tasks() -> None:
    low, high = draws(where(high=2.0), 30), draws(where(low=2.0), 90)
    assert {(task.source, task.level) for task in low} == {("arithmetic", 3)}
    assert {(task.source, task.level) for task in high} == {("arithmetic", 4), ("arithmetic", 5), ("countdown", 3)}
    everything = draws(Uniform(ENVS), 120)
    assert sorted(map(prompt, [*low, *high])) == sorted(map(prompt, everything)), "none lost, none in both"
    assert {task.level for task in draws(where(low=2.0, high=3.0), 20)} == {3, 4}


def test_the_inner_sampler_is_asked_with_step_and_estimator() -> None:
    inner, estimator = Noting(ENVS[0]), Counts()
    assert TaskScoreRange(inner, ENVS).next(3, estimator) == ENVS[0].task(0) and inner.asked == [(3, estimator)]


def test_scores_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    tasks = draws(Uniform(ENVS), 40)
    path.write_text(
        "".join(json.dumps({"prompt": prompt(task), "score": n % 5 + 1}) + "\n" for n, task in enumerate(tasks))
    )
    assert draws(where(low=4, scores=str(path)), 16) == [task for n, task in enumerate(tasks) if n % 5 + 1 >= 4]
    with pytest.raises(DataError, match="has no score for"):
        draws(where(low=4, scores=str(path)), 17)
    path.write_text('{"prompt": "1+1=?", "score": "hard"}\n')
    with pytest.raises(DataError, match=r"scores\.jsonl:1: need a prompt and a number"):
        draws(where(low=4, scores=str(path)), 1)


def test_state_is_restored_and_skipped_tasks_are_counted() -> None:
    first = where(low=2.0)
    draws(first, 5)
    again = restored(where(low=2.0), first)
    again.inner.restore(first.inner.state())  # type: ignore[attr-defined]
    assert draws(again, 10) == draws(first, 10)
    metrics = first.learn([group_of(ENVS[1].task(0), [0.0]), group_of(ENVS[2].task(0), [0.0])])
    assert metrics == again.learn([group_of(ENVS[1].task(0), [0.0]), group_of(ENVS[2].task(0), [0.0])])
    assert metrics == {"task_score": 2.5, "passed_over": 5.0}


def test_refuses_what_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="low < high, got 3"):
        where(low=3.0, high=3.0)
    with pytest.raises(ConfigurationError, match="none of 1000 tasks in a row has a score from 9"):
        draws(where(low=9.0), 1)
    assert where().problems(make_run()) == []
    assert unmet(where((KeyValue(2),)).env_needs, (KeyValue(2),)) == SCORED.unmet((KeyValue(2),))
    assert where(scores=str(tmp_path / "none")).problems(make_run()) == [f"{tmp_path / 'none'} does not exist"]
