"""The environment of small functions: what it asks, that its own programs are right, and what it pays for others."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace

import pytest

from strop.environments.bundled.programs import SHAPES, Programs
from strop.environments.code.cases import cases_of
from strop.environments.code_execution import Trial, Trials
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.errors import ConfigurationError
from strop.launch.checks.preflight import check
from strop.recipes.environments import parse_envs
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.reinforce import Reinforce
from strop.types import Message

LEVELS = [Programs(level) for level in SHAPES]


def test_tasks_are_the_same_on_every_machine() -> None:
    """Frozen: a change here would move every recorded metric."""
    task = Programs(2).task(1)
    tests = cases_of(task)
    assert prompt_of(task) == "def f(x): times 6, add 2. f(9)=56 f(4)=26"
    assert tests.solution == "def f(x):\n x=x*6\n return x+2"
    assert tests.outputs == tuple(6 * x + 2 for (x,) in tests.inputs)


@pytest.mark.parametrize("env", LEVELS, ids=lambda env: str(env.level))
def test_sides_never_meet_and_hidden_calls_are_not_shown(env: Programs) -> None:
    train, heldout = ([env.task(index, side) for index in range(40)] for side in (False, True))
    assert all(is_heldout(prompt_of(task)) for task in heldout) and not any(is_heldout(prompt_of(t)) for t in train)
    assert len({task.id for task in train}) > 30 and replace(env, seed=1).task(0) != env.task(0)
    for task in (*train, *heldout):
        tests, prompt = cases_of(task), prompt_of(task)
        assert len(tests.inputs) == len({repr(each) for each in tests.inputs}) == 10
        assert not any(f"f({each!r})=" in prompt for (each,) in tests.inputs)
        assert prompt.count("f(") == 3 and tests.solution not in prompt
        assert tests.solution.count("\n") == SHAPES[env.level][1]


def test_the_envs_own_programs_are_right_in_the_sandbox_at_every_level() -> None:
    """Outputs are computed without them: by what each step means."""

    async def tried() -> list[Trial]:
        trials = Trials()
        asked = [cases_of(env.task(index, True)) for env in LEVELS for index in range(6)]
        found = [await trials.of(tests.solution, tests) for tests in asked]
        await trials.close()
        return found

    assert all(trial.is_right for trial in asyncio.run(tried()))


def test_what_an_rollout_is_paid() -> None:
    """Whoever waits and whoever cannot are told the same; an equal program needs not be the same text."""
    env = Programs(2)
    task = env.task(1)
    completions = ("def f(x):\n return 2*(3*x+1)", "def f(y):\n return y*6+1", "f=lambda x:6*x+2", "", "no")

    async def paid() -> list[float | None]:
        episode = env.episode()
        await episode.reset(task)
        demonstrated = await episode.step(episode.demonstrate())
        said = [await episode.step(Message("assistant", completion)) for completion in completions]
        await env.trials.close()
        return [answer.reward for answer in (demonstrated, *said)]

    assert asyncio.run(paid()) == [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    assert [env.check(task, completion) for completion in completions[:2]] == [1.0, 0.0]


def test_a_env_is_its_own_source_and_can_be_shipped_after_it_was_used() -> None:
    env = Programs(1)
    asyncio.run(_used(env))
    assert eval(repr(env), {"Programs": Programs, "Trials": Trials}) == env
    assert pickle.loads(pickle.dumps(env)) == env and hash(env) == hash(Programs(1))
    assert env.answer("<think>so</think> def f(x): return 1\n") == "def f(x): return 1"
    for level in (0, 7):
        with pytest.raises(ConfigurationError, match=f"levels 1 to 6, got {level}"):
            Programs(level)


async def _used(env: Programs) -> None:
    await env.trials.of("", cases_of(env.task(0)))
    await env.trials.close()


def run_with(**fields: str) -> Run:
    return Setting(env="programs:1", steps=1, **fields).run("x", GroupMean(), (Reinforce(),))  # type: ignore[arg-type]


def test_without_a_wall_a_run_is_refused_unless_it_says_so_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    check(run_with())
    monkeypatch.setattr("sys.platform", "darwin")  # where there are neither seccomp nor Landlock
    with pytest.raises(ConfigurationError, match=r"envs.0.trials: nothing here isolates .* isolation=process"):
        check(run_with())
    check(run_with(isolation="process"))
    assert [env.trials.isolation for env in parse_envs("programs:1", isolation="process")] == ["process"]  # type: ignore[attr-defined]
