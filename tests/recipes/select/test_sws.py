from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from math import e
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError, LLMClientError
from strop.generate.engines.scripted import Scripted
from strop.recipes.select.sws import Concepts, Weaknesses
from strop.run_state import Flow
from strop.types import Group, Origin, Task
from tests.control.asking import Told, a_flow, group_of, written

ENV = Arithmetic(1)
TASK = ENV.task(0)


def completion(prompt: str, key: int) -> str:
    """Half of all rollouts of 20+30=? are right, none at 1+1=? and all at 2+2=?."""
    if "20+30" in prompt:
        return "50" if key % 2 else "51"
    return "4" if "2+2" in prompt else "7"


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with a_flow(tmp_path_factory.mktemp("flow"), engine=Scripted(completion)) as flow:
        yield flow


def history(*found: float) -> list[tuple[int, int, float]]:
    return [(version, version, success) for version, success in enumerate(found)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((0.0, 0.4), False),  # rising
        ((0.4, 0.2), True),
        ((0.4,), False),  # one visit has no slope
        ((0.0, 0.0), False),
        ((0.5, 0.2), False),  # half of the rollouts solved it once
        ((0.49, 0.2), True),
        ((0.1, 0.4, 0.0), True),  # slope -0.05
        ((0.1, 0.0, 0.2), False),
    ],
)
def test_weak_is_what_stays_unsolved_and_falls(found: tuple[float, ...], expected: bool) -> None:
    assert Weaknesses().is_weak(history(*found)) == expected
    assert Weaknesses().is_weak(history(*found)[::-1]) == expected, "in the order of versions, however it came"


def test_three_visits_where_three_are_asked_for() -> None:
    assert not Weaknesses(visits=3).is_weak(history(0.4, 0.2))
    assert Weaknesses(visits=3).is_weak(history(0.4, 0.2, 0.1))


def test_concepts_by_hand() -> None:
    """a and b were needed together twice, a and c once: after a, b comes with e^2 : e^1 : e^0 at temperature 1."""
    table = Concepts()
    for needed in (["a", "b"], ["b", "a", "a"], ["a", "c"], ["d"]):
        table.add(needed)
    assert table.counts == {"a": 3, "b": 2, "c": 1, "d": 1}
    samples = [table.sample(2, 1.0, key) for key in range(3000)]
    assert sum(first == "a" for first, _ in samples) / 3000 == pytest.approx(3 / 7, abs=0.03)
    after = [second for first, second in samples if first == "a"]
    assert after.count("b") / len(after) == pytest.approx(e**2 / (e**2 + e + 1), abs=0.04)
    assert all(second == "b" for first, second in (table.sample(2, 0.01, key) for key in range(50)) if first == "a")
    assert sorted(table.sample(9, 1.0, 0)) == ["a", "b", "c", "d"] and Concepts().sample(2, 1.0, 0) == []


def advised(problems: list[str], solved: list[str]) -> Told:
    return Told({"concepts": ["carry\n two terms \n\n"], "about": list(problems), "solved": list(solved)})


def weaken(flow: Flow, task_generator: Weaknesses) -> list[Task]:
    assert written(flow, task_generator, group_of(TASK, [1.0, 0.0, 0.0, 0.0], 1, 1)) == []
    return written(flow, task_generator, group_of(TASK, [0.0] * 4, 2, 2))


def test_problems_are_taken_where_they_are_agreed_on_and_sometimes_solved(flow: Flow) -> None:
    problems = [f"[task]\n{text}\n[answer]\nwhatever" for text in ("20+30=?", "1+1=?", "2+2=?", "20+30=?")]
    solved = [f"[answer]\n{answer}" for answer in ("50", "2", "4", "51")]
    llm_client = advised(problems, solved)
    task_generator = Weaknesses(llm_client, exercises=4, probes=32)
    made = weaken(flow, task_generator)
    assert [(prompt_of(task), task.answer) for task in made] == [("20+30=?", "50"), ("20+30=?", "51")]
    named = [(parts["task"], parts["answer"]) for parts in llm_client.asked if parts["wanted"] == "concepts"]
    assert named == [(prompt_of(TASK), TASK.answer)], "of the task that is weak, and none other"
    asked = [parts for parts in llm_client.asked if parts["wanted"] == "about"]
    assert [sorted(parts["ideas"].split("\n")) for parts in asked] == [["carry", "two terms"]] * 4
    solving = [parts for parts in llm_client.asked if parts["wanted"] == "solved"]
    assert [parts["task"] for parts in solving] == ["20+30=?", "1+1=?", "2+2=?", "20+30=?"]
    assert all("answer" not in parts for parts in solving)


@pytest.mark.parametrize(("right", "is_taken"), [(0, False), (1, True), (3, True), (4, False)])
def test_a_quarter_is_enough_and_three_are_not_too_many(tmp_path: Path, right: int, is_taken: bool) -> None:
    """Four probes, of which the first few are right: 1/4 and 3/4 are within."""
    probes = count()
    scripted = Scripted(lambda prompt, key: "50" if next(probes) < right else "51")
    with a_flow(tmp_path, engine=scripted) as flow:
        task_generator = Weaknesses(advised(["[task]\n20+30=?\n[answer]\n50"], ["[answer]\n50"]), exercises=1, probes=4)
        assert len(weaken(flow, task_generator)) == is_taken


def test_a_completion_without_a_problem_takes_none_of_those_before_it(flow: Flow) -> None:
    good, bad = "[task]\n20+30=?\n[answer]\n50", "I would rather not."
    task_generator = Weaknesses(advised([good, bad], ["[answer]\n50"]), exercises=3, probes=32)
    assert [task.answer for task in weaken(flow, task_generator)] == ["50"]
    with pytest.raises(LLMClientError, match="no answer"):
        weaken(flow, Weaknesses(advised([bad], ["[answer]\n50"])))


def test_a_label_needs_more_than_half_of_the_votes(flow: Flow) -> None:
    problem = ["[task]\n20+30=?\n[answer]\n50"]
    answers = [f"[answer]\n{answer}" for answer in ("50", "51", "50", "51", "52", "50")]
    task_generator = Weaknesses(advised(problem, answers), exercises=2, votes=3, probes=32)
    assert [task.answer for task in weaken(flow, task_generator)] == ["50"], "2 of 3, then 1 of 3 each"
    even = Weaknesses(advised(problem, answers[:2]), exercises=1, votes=2, probes=8)
    assert weaken(flow, even) == []


def test_a_weakness_is_answered_once_and_probes_are_counted(flow: Flow) -> None:
    task_generator = Weaknesses(advised(["[task]\n1+1=?\n[answer]\n2"], ["[answer]\n2"]), exercises=1, probes=3)
    written(flow, task_generator, group_of(TASK, [1.0, 0.0, 0.0, 0.0], 1, 1))
    group = group_of(TASK, [0.0] * 4, 2, 2)
    play = flow.player(group)
    assert asyncio.run(task_generator(group, play)) == []
    task_generator.observe(group)
    made = play.unused([])
    assert len(made) == 3 and sum(rollout.num_sampled for rollout in made) > 0
    assert (
        written(flow, task_generator, group_of(TASK, [0.0] * 4, 3, 3)) == []
        and len(task_generator.llm_client.asked) == 3
    )  # type: ignore[union-attr]


def test_written_tasks_and_helped_rollouts_are_no_evidence(flow: Flow) -> None:
    task_generator = Weaknesses(advised(["[task]\n20+30=?\n[answer]\n50"], ["[answer]\n50"]), exercises=1, probes=32)
    (made,) = weaken(flow, task_generator)
    before = task_generator.state()["seen"]
    task_generator.observe(group_of(made, [0.0, 0.0], 5, 5))
    helped = group_of(ENV.task(7), [1.0, 0.0], 6, 6)
    for rollout in helped.rollouts:
        rollout.origin = Origin.GUIDED
    task_generator.observe(helped)
    assert task_generator.state()["seen"] == before


def test_a_problem_that_fits_no_context_is_not_taken_and_ends_nothing(flow: Flow) -> None:
    long = "1+" * 200 + "1=?"
    assert weaken(flow, Weaknesses(advised([f"[task]\n{long}\n[answer]\n201"], ["[answer]\n201"]), exercises=1)) == []


def test_it_is_bounded_and_restored_it_finds_the_same(flow: Flow) -> None:
    def make() -> Weaknesses:
        return Weaknesses(advised(["[task]\n20+30=?\n[answer]\n50"], ["[answer]\n50"]), exercises=1, probes=32)

    task_generator, other = make(), make()
    for number in range(3):
        task_generator.observe(group_of(ENV.task(number), [1.0, 0.0, 0.0, 0.0], number, 1))
    written(flow, task_generator, group_of(ENV.task(0), [0.0] * 4, 3, 2))
    other.restore(json.loads(json.dumps(task_generator.state())))
    assert other.state() == json.loads(json.dumps(task_generator.state())) or other.state() == task_generator.state()
    for number in (1, 2):
        group = group_of(ENV.task(number), [0.0] * 4, 4 + number, 3)
        found = written(flow, task_generator, group)
        assert len(found) == 1 and written(flow, other, group) == found
    for number in range(10_050):
        task = Task(TASK.messages, "1", "arithmetic", 1, f"t{number}")
        task_generator.observe(Group(number, task, group_of(task, [0.0]).rollouts, 1))
    assert len(task_generator.state()["seen"]) == 10_000


def test_bounds_are_checked() -> None:
    for fields in ({"visits": 1}, {"exercises": 0}, {"votes": 0}, {"probes": 0}):
        with pytest.raises(ConfigurationError, match="Weaknesses needs visits >= 2"):
            Weaknesses(**fields)  # type: ignore[arg-type]
