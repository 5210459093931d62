"""SPARK's items: which follow from which groups, in whose order, how many, and what a restart keeps."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.heldout_split import prompt_of
from strop.environments.judging.easier_question import key_of
from strop.environments.judging.multiple_choice import Choice
from strop.environments.judging.verdict_questions import Judged
from strop.errors import ConfigurationError
from strop.recipes.reward.spark import Recycled, spark
from strop.recipes.setting import Setting
from strop.run_state import Flow
from strop.stats.task_lineage import ancestor, child, is_written
from strop.types import Group, Message, Origin, Outcome, Task
from tests.control.asking import group_of

ENV = Arithmetic(4)
TASK = ENV.task(0)
ASKED, RIGHT = prompt_of(TASK), TASK.answer


def said(completions: Sequence[str], number: int = 0, version: int = 0, task: Task = TASK) -> Group:
    """A group of these completions, each paid as the environment would."""
    group = group_of(task, [float(ENV.check(task, completion)) for completion in completions], number, version)
    for rollout, completion in zip(group.rollouts, completions, strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", completion)),)
    return group


def written(flow: Flow, task_generator: Recycled, group: Group) -> list[Task]:
    return asyncio.run(task_generator(group, flow.player(group)))


def questions(flow: Flow, completions: Sequence[str], count: int = 1, **fields: float) -> list[Task]:
    """What is asked about answers after each of `count` groups alike."""
    made = (written(flow, Recycled((ENV,), reflected=0, **fields), said(completions, n)) for n in range(count))  # type: ignore[arg-type]
    return [task for tasks in made for task in tasks]


def test_all_right_and_all_wrong_are_asked_about_one_answer(flow: Flow) -> None:
    (yes,) = questions(flow, [RIGHT, f"<think>1+1=2</think>{RIGHT}"])
    assert (prompt_of(yes), key_of(yes), yes.source) == (f"{ASKED} is it {RIGHT}?", "yes", "judged-arithmetic")
    assert is_written(yes) and ancestor(yes) == TASK.id
    (no,) = questions(flow, ["<think>1+1=2</think>7", "so?", "<think>"])
    assert (prompt_of(no), key_of(no)) == (f"{ASKED} is it 7?", "no"), "the working is not shown, nor what is none"
    assert questions(flow, ["so?", "<think>"]) == []
    assert Judged(ENV).check(yes, "yes") == Judged(ENV).check(no, "no") == 1


def test_a_mixed_group_is_asked_about_one_or_two_in_any_order(flow: Flow) -> None:
    """400 groups, each with one question: 0.3 about one answer; of two, the right one stands first in half."""
    made = questions(flow, [RIGHT, "7", "8", "so?"], 400)
    kinds = Counter(task.source for task in made)
    assert sum(kinds.values()) == 400 and 90 < kinds["judged-arithmetic"] < 150
    pairs = [task for task in made if task.source == "choice-arithmetic"]
    firsts = 0
    for task in pairs:
        a, first, b, second = prompt_of(task).removeprefix(f"{ASKED} ").split()
        assert (a, b) == ("a", "b") and {first, second} in ({RIGHT, "7"}, {RIGHT, "8"}), "never two alike"
        assert Choice(ENV, 2).check(task, "a") == (first == RIGHT) != Choice(ENV, 2).check(task, "b")
        firsts += first == RIGHT
    assert 0.42 < firsts / len(pairs) < 0.58
    single = Counter(key_of(task) for task in made if task.source == "judged-arithmetic")
    assert min(single["yes"], single["no"]) > 30
    assert {task.source for task in questions(flow, [RIGHT, "7"], 50, pointwise=1.0)} == {"judged-arithmetic"}
    assert {task.source for task in questions(flow, [RIGHT, "7"], 50, pointwise=0.0)} == {"choice-arithmetic"}


def test_only_own_rollouts_that_count_become_items(flow: Flow) -> None:
    group = said(["7", RIGHT, "8"])
    group.rollouts[1].origin, group.rollouts[2].outcome = Origin.GUIDED, Outcome.FAILED
    judged, again = written(flow, Recycled((ENV,)), group)
    assert prompt_of(judged) == f"{ASKED} is it 7?" and prompt_of(again) == f"{ASKED} wrong: 7"


def test_second_thoughts_show_the_completion_then_its_answer(flow: Flow) -> None:
    task_generator = Recycled((ENV,), judged=0, reflected=4)
    completions = [RIGHT, "<think>1+1=2 2+2=5</think>5"]
    made = [task for number in range(6) for task in written(flow, task_generator, said(completions, number))]
    assert [prompt_of(task) for task in made] == [f"{ASKED} wrong: 1+1=2 2+2=5 5"] * 2 + [f"{ASKED} wrong: 5"] * 2
    assert all(task.source == "arithmetic" and ENV.check(task, RIGHT) == 1 for task in made)
    assert written(flow, Recycled((ENV,), judged=0), said([RIGHT, "so?"])) == [], "nothing wrong was said"


def test_items_never_become_items(flow: Flow) -> None:
    task_generator = Recycled((ENV,))
    for item in written(flow, task_generator, said([RIGHT, "7"])):
        assert written(flow, task_generator, replace(said([RIGHT, "7"]), task=item)) == []
    assert written(flow, task_generator, said(["7"], task=child(TASK, "1+1=?", "2"))) == []
    assert written(flow, task_generator, group_of(replace(TASK, source="elsewhere"), [0.0])) == []


def test_counts_are_by_version_and_survive_a_restart(flow: Flow) -> None:
    task_generator = Recycled((ENV,), judged=2, reflected=1)
    counts = [
        len(written(flow, task_generator, said(["7"], n, version))) for n, version in enumerate((0, 0, 0, 1, 0, 1))
    ]
    assert counts == [2, 1, 0, 2, 0, 1], "late groups of an older version find its own count"
    other = Recycled((ENV,), judged=2, reflected=1)
    other.restore(json.loads(json.dumps(task_generator.state())))
    for each in (task_generator, other):
        assert [len(written(flow, each, said(["7"], 9, version))) for version in (0, 1, 2)] == [0, 0, 2]
    assert task_generator.state() == other.state()


def test_metrics_by_kind() -> None:
    judged, compared = (replace(TASK, source=f"{kind}-arithmetic") for kind in ("judged", "choice"))
    groups = [group_of(judged, [1.0, 0.0]), group_of(judged, [1.0, 1.0]), group_of(TASK, [0.0]),
              group_of(child(TASK, "1+1=?", "2"), [0.0])]  # fmt: skip
    assert Recycled((ENV,)).learn(groups) == {
        "judged_share": 0.5, "judged_right": 0.75, "compared_share": 0.0, "reflected_share": 0.25,
        "reflected_right": 0.0,
    }  # fmt: skip
    assert Recycled((ENV,)).learn([group_of(compared, [1.0])])["compared_right"] == 1


def test_the_recipe_asks_all_three_kinds_and_draws_tasks_of_one() -> None:
    run = spark(Setting(env="arithmetic:4"))
    assert [env.name for env in run.envs] == ["arithmetic", "judged-arithmetic", "choice-arithmetic"]
    assert isinstance(run.sampler, WithWritten) and run.sampler.inner == Uniform((ENV,)) and run.sampler.share == 0.5
    assert isinstance(run.task_generator, Recycled) and run.task_generator.problems(run) == []
    assert run.warmup is not None and run.warmup.envs == run.envs
    run.envs = run.envs[:2]
    assert run.task_generator.problems(run) == ["choice-arithmetic:4 is not among the environments of this run: add it"]
    with pytest.raises(ConfigurationError, match="got 1, 1 and 2"):
        Recycled((ENV,), 1, 1, 2)
