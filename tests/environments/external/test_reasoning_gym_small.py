"""Drills: every worked solution is right, says each step truly, and pays; wrong and untagged answers do not."""

from __future__ import annotations

import pickle
import re

import pytest

from strop.environments.external.reasoning_gym_small import SETTINGS, WORKINGS, Drill, tagged
from strop.errors import ConfigurationError
from strop.recipes.environments import parse_envs


@pytest.mark.parametrize("dataset", SETTINGS)
@pytest.mark.parametrize("level", [1, 3])
def test_the_shown_solution_is_paid_and_another_answer_is_not(dataset: str, level: int) -> None:
    env = Drill(dataset, level)
    for task in (env.task(index, heldout) for index in range(12) for heldout in (False, True)):
        shown = env.solution(task)
        assert env.check(task, shown) == 1.0
        assert env.check(task, shown.replace(task.answer, "")) == env.check(task, task.answer) == 0.0
        assert (len(shown.splitlines()) > 1) == (dataset in WORKINGS)


@pytest.mark.parametrize("dataset", ["chain_sum", "products", "gcd", "leg_counting"])
def test_every_step_of_a_working_is_true(dataset: str) -> None:
    env = Drill(dataset, 3)
    for index in range(20):
        steps = env.solution(env.task(index)).splitlines()[:-1]
        for step in steps:
            one, sign, other, result = re.fullmatch(r"(-?\d+) ([-+*%]) (\d+) = (-?\d+)", step).groups()  # type: ignore[union-attr]
            found = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "%": int.__mod__}[sign](int(one), int(other))
            assert found == int(result)


def test_letters_are_counted_and_turned_around_one_by_one() -> None:
    env = Drill("letter_counting", 2)
    task = env.task(4)
    letter = re.search(r'letter "(.)"', task.messages[0].content).group(1)  # type: ignore[union-attr]
    lines = env.solution(task).splitlines()[:-1]
    spelled = [line.rpartition(":")[0].split(" ") for line in lines]
    assert sum(each.lower() == letter for word in spelled for each in word) == int(task.answer)
    back = Drill("spell_backward", 1)
    forward, backward, _ = back.solution(back.task(0)).splitlines()
    assert forward.split() == backward.split()[::-1] and "".join(backward.split()) == back.task(0).answer


def test_only_the_last_pair_of_tags_counts() -> None:
    assert tagged("<answer>1</answer> no: <answer> 2 </answer>.") == "2"
    assert tagged("<answer>1") == tagged("1</answer>") == tagged("1") == ""


def test_a_drill_has_a_name_and_travels() -> None:
    (env,) = parse_envs("drill/gcd:2", seed=5)
    assert env == Drill("gcd", 2, 5) and env.name == "drill/gcd"
    assert pickle.loads(pickle.dumps(env)).task(3) == env.task(3)
    with pytest.raises(ConfigurationError, match="levels 1 to 3"):
        Drill("gcd", 4)
    with pytest.raises(ConfigurationError, match="did you mean gcd"):
        parse_envs("drill/gdc")
