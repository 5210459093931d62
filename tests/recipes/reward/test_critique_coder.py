"""Programs of the policy become critiques whose truth is what tests said, and their answers come in turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.uniform import Uniform
from strop.control.task_generators.support.validation import holds
from strop.environments.bundled.critiques import Critiques
from strop.environments.bundled.programs import Programs
from strop.environments.data.heldout_split import prompt_of
from strop.recipes.reward.critique_coder import AlternatingLabels, CritiqueTasks, critique
from strop.stats.task_lineage import ancestor, is_written
from strop.types import SUCCESS, Group, Message, Origin, Outcome, Task
from tests.control.asking import group_of

TASK = Programs(2).task(0)
TRUE, FALSE = "conclusion: {T}", "conclusion: {F}"


def said(completions: Sequence[str], paid: Sequence[float], task: Task = TASK) -> Group:
    """A group of these completions; `paid` is what the environment's tests came to."""
    group = group_of(task, [0.7] * len(completions))
    for rollout, completion, score in zip(group.rollouts, completions, paid, strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", completion)),)
        rollout.turn_rewards, rollout.facts[SUCCESS] = (score,), score
    return group


def written(group: Group) -> list[tuple[str, str]]:
    made = asyncio.run(CritiqueTasks()(group, cast(Any, None)))
    return [(prompt_of(task), task.answer) for task in made]


def asked(program: str) -> str:
    return f"{prompt_of(TASK)}\n{program}\nright?"


def test_the_first_program_of_each_kind_and_what_tests_said_of_it() -> None:
    """The reward of 0.7, a share of tests, says nothing: all of them must pass."""
    completions = ["", "def f(x):\n return 1", "<think>2</think>def f(x):\n return 2", "def f(x): 3", "def f(x): 4"]
    assert written(said(completions, [0, 0, 1, 1, 0])) == [
        (asked("def f(x):\n return 1"), FALSE),
        (asked("def f(x):\n return 2"), TRUE),
    ]
    assert written(said(["a", "b"], [0, 0])) == [(asked("a"), FALSE)]
    assert written(said(["", " \n "], [0, 0])) == []


def test_only_programs_of_the_policy_become_critiques() -> None:
    group = said(["a", "b", "c"], [0, 0, 0])
    group.rollouts[0].origin, group.rollouts[1].outcome = Origin.TEACHER, Outcome.FAILED
    assert written(group) == [(asked("c"), FALSE)]
    assert written(said(["a"], [1], Critiques(2).task(0))) == []


def test_a_critique_is_a_task_of_its_env_that_says_no_answer() -> None:
    """`F` alone would stand in every prompt, as the function's name."""
    env = Critiques(2)
    for truth, answer in ((True, TRUE), (False, FALSE)):
        task = critique(TASK, "def f(x):\n return x", truth)
        assert (task.source, task.level, task.answer) == ("critiques", 2, answer)
        assert is_written(task) and ancestor(task) == TASK.id
        assert env.check(task, answer) == 1 and env.check(task, TRUE if answer == FALSE else FALSE) == 0
        assert not holds(prompt_of(task), task.answer) and not holds(prompt_of(task), env.answer(task.answer))


def test_scores_of_a_chat_cannot_be_smuggled_into_a_critique() -> None:
    assert written(said(["def f(x): 1 <|assistant|>"], [0])) == [(asked("def f(x): 1 (|assistant|)"), FALSE)]


def sampler_with(answers: str, share: float = 0.5) -> AlternatingLabels:
    sampler = AlternatingLabels(Uniform((Programs(1),)), share)
    for number, letter in enumerate(answers):
        sampler.offer(critique(TASK, str(number), letter == "T"))
    return sampler


def drawn(sampler: AlternatingLabels, count: int) -> str:
    """T and F for critiques, `.` for what the inner sampler chose."""
    tasks = [sampler.next(0, Counts()) for _ in range(count)]
    return "".join(task.answer[-2] if task.source == "critiques" else "." for task in tasks)


def test_true_and_false_come_in_turn() -> None:
    assert drawn(sampler_with("FFFFTT"), 12) == ".F.T.F.T.F.."
    assert drawn(sampler_with("TTT"), 6) == ".T...."
    assert drawn(sampler_with("TFTF", 0.2), 20) == "....T....F....T....F"


def test_what_waits_longest_comes_first_and_a_flood_of_one_answer_leaves_the_other() -> None:
    sampler = sampler_with("TT" + "F" * 130, 0.9)
    sampler.next(0, Counts())  # from the inner sampler
    found = [prompt_of(sampler.next(0, Counts())).split("\n")[-2] for _ in range(4)]
    assert found == ["0", "4", "1", "5"]  # places 2 and 3 are forgotten, 128 of that answer wait


def test_a_restart_keeps_what_waits_and_whose_turn_it_is() -> None:
    whole, begun = sampler_with("TTFF"), sampler_with("TTFF")
    assert drawn(whole, 3) == drawn(begun, 3) == ".T."
    again = AlternatingLabels(Uniform((Programs(1),)), 0.5)
    again.restore(json.loads(json.dumps(begun.state())))
    assert drawn(again, 7) == drawn(whole, 7) == "F.T.F.."
