"""Programs to judge: whose truth the sandbox confirms, as many right as wrong, and only the last conclusion counts."""

from __future__ import annotations

import asyncio
from ast import literal_eval
from collections.abc import Sequence

import pytest

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.critiques import Critiques
from strop.environments.bundled.programs import SHAPES
from strop.environments.code.cases import Cases
from strop.environments.code_execution import Trials
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid
from strop.filter.rewards.unit_tests import PassedTests
from strop.recipes.reward.critique_coder import AlternatingLabels, CritiqueTasks, SolvedOrJudged, critique_coder
from strop.recipes.setting import Setting
from strop.types import Message, Task
from tests.filter.completions import said

LEVELS = [Critiques(level) for level in SHAPES]


@pytest.mark.parametrize(
    ("completion", "is_paid_if_true", "is_paid_if_false"),
    [
        ("conclusion: {T}", 1, 0),
        ("conclusion: {F} no, wait. conclusion: {T}", 1, 0),
        ("conclusion: {T} conclusion: { F }", 0, 1),
        ("conclusion:{F}", 0, 1),
        ("T", 0, 0),
        ("conclusion: {True}", 0, 0),
        ("conclusion: {T} conclusion: {TF}", 0, 0),
        ("conclusion: {", 0, 0),
        ("", 0, 0),
        ("conclusion: {" * 7000, 0, 0),
    ],
)
def test_the_last_conclusion_alone_counts(completion: str, is_paid_if_true: int, is_paid_if_false: int) -> None:
    env = Critiques(1)
    right, wrong = env.task(0), env.task(1)
    assert (right.answer, wrong.answer) == ("conclusion: {T}", "conclusion: {F}")
    assert (env.check(right, completion), env.check(wrong, completion)) == (is_paid_if_true, is_paid_if_false)


@pytest.mark.parametrize("env", LEVELS, ids=lambda env: str(env.level))
def test_as_many_are_right_as_wrong_on_both_sides(env: Critiques) -> None:
    for side in (False, True):
        tasks = [env.task(index, side) for index in range(20)]
        assert all(is_heldout(prompt_of(task)) is side for task in tasks)
        assert [task.answer for task in tasks] == ["conclusion: {T}", "conclusion: {F}"] * 10
        assert all(env.check(task, env.solution(task)) == 1.0 for task in tasks)


def test_the_sandbox_says_the_same_of_what_is_shown() -> None:
    """A program that is called right gives what the prompt's two calls say; of those called wrong most do not."""

    async def tried() -> list[tuple[str, bool]]:
        trials, found = Trials(), []
        for env in LEVELS:
            for task in map(env.task, range(6)):
                asked, _, program = prompt_of(task).partition("\n")
                calls = [each.split(")=") for each in asked.partition(". f(")[2].split(" f(")]
                cases = Cases("f", tuple([literal_eval(x)] for x, _ in calls), tuple(literal_eval(y) for _, y in calls))
                trial = await trials.of(program.removesuffix("\nright?"), cases)
                found.append((task.answer[-2], trial.is_right))
        await trials.close()
        return found

    found = asyncio.run(tried())
    assert all(is_right for answer, is_right in found if answer == "T")
    assert sum(is_right for answer, is_right in found if answer == "F") <= 6 < len(found) // 2


def test_a_critique_earns_what_its_env_paid_and_a_program_its_share_of_tests() -> None:
    tests = PassedTests("share")
    reward = SolvedOrJudged(tests)
    critique = said(Critiques(1).task(0), "conclusion: {T}", "x")
    critique.rollouts[0].turn_rewards = (1.0,)
    task = Task((Message("user", "?"),), str(Cases("f", ([1], [2]), (2, 4))), "programs", 1)

    async def asked() -> list[Sequence[float | Paid]]:
        found = [await reward(critique), await reward(said(task, "f=lambda x: 2", "f=lambda x: 2*x"))]
        await tests.trials.close()
        return found

    assert asyncio.run(asked()) == [[1.0, 0.0], [0.5, 1.0]]


def test_what_the_recipe_is_made_of_and_what_it_refuses() -> None:
    run = critique_coder(Setting(env="programs:1+programs:2+critiques:1+critiques:2"), share=0.25)
    sampler = run.sampler
    assert isinstance(sampler, AlternatingLabels) and sampler.share == 0.25 and isinstance(sampler.inner, Uniform)
    assert [(env.name, env.level) for env in sampler.inner.envs] == [("programs", 1), ("programs", 2)]
    assert isinstance(run.task_generator, CritiqueTasks) and run.task_generator.problems(run) == []
    assert critique_coder().sampler.share == 0.2  # type: ignore[attr-defined]
    absent = critique_coder(Setting(env="programs:1+programs:2+critiques:1"))
    assert CritiqueTasks().problems(absent) == ["critiques:2 is not among the environments of this run: add it to env"]
    for env in ("programs:1", "critiques:1"):
        with pytest.raises(ConfigurationError, match="programs and critiques"):
            critique_coder(Setting(env=env))
    for share in (0.0, 1.0):
        with pytest.raises(ConfigurationError, match=f"between 0 and 1, got {share:g}"):
            critique_coder(share=share)
