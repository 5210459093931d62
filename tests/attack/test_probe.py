"""Constant completions are found where they are paid, and nowhere else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.attack.ask_rewards import AskedRewards
from strop.attack.constants import constants, frame_of, is_same, most_frequent
from strop.attack.probe import ConstantPay, Probed, probed
from strop.environments.external.reasoning_gym import ReasoningGym
from strop.filter.rewards.from_environment import Checked, Earned
from strop.filter.rewards.python_function import PythonFunction
from strop.recipes.environments import bundled_envs
from strop.roles import Environment, Reward
from tests.attack.sums import Questions

PAYING = str(Path(__file__).parent / "paying.py")


def probe(
    env: Environment, rewards: tuple[Reward, ...] = (Earned(),), most: int = 40, seconds: float = 120.0
) -> Probed:
    async def work() -> Probed:
        asked = AskedRewards(rewards, env, 5.0, is_apart=False)
        try:
            return await probed(asked, most, seconds)
        finally:
            await asked.close()

    return asyncio.run(work())


def paid(found: Probed) -> dict[str, float]:
    assert not found.problem
    return {each.name: each.share for each in found.faults}


# ---- what is paid, and what explains it


def test_a_question_of_yes_or_no_may_pay_yes_at_half_of_its_tasks() -> None:
    found = probe(Questions(("yes", "no")))
    assert paid(found) == {} and not found.is_dominated
    (yes,) = (each for each in found.pays if each.name == "yes")
    assert (yes.tasks, yes.paid) == (20, 0), "at the other half it is not the answer, and earns nothing"


def test_the_same_answers_in_another_spelling_are_no_constants() -> None:
    """A scorer that takes `yes` for True is generous, not broken."""
    found = probe(Questions(("True", "False")), (PythonFunction(f"{PAYING}:generous"),))
    assert paid(found) == {}


def test_what_is_accepted_everywhere_is_named_with_its_share() -> None:
    found = probe(Questions(("17", "23", "41"), accepted=("nan",)))
    assert paid(found) == {"nan": 1.0} and found.tasks == 40
    assert found.faults[0].told() == "'nan' is paid like a right answer on 40 of 40 tasks (100%)"


def test_what_is_accepted_at_two_of_three_tasks_counts_where_it_is_not_the_answer() -> None:
    found = probe(Questions(("0", "23", "41"), accepted=("0",)), most=30)
    assert paid(found) == {"0": pytest.approx(20 / 30)}


def test_a_scorer_that_accepts_everything_is_found_though_wrong_answers_earn_as_much() -> None:
    found = probe(Questions(("17", "23")), (PythonFunction(f"{PAYING}:everything"),))
    assert found.apart == 0 and paid(found)["nothing"] == 1.0 and len(found.faults) >= 20


def test_a_scorer_that_pays_nothing_is_no_such_fault() -> None:
    assert paid(probe(Questions(("17", "23")), (PythonFunction(f"{PAYING}:nothing"),))) == {}


@pytest.mark.parametrize(
    ("function", "name"), [("length", "a long text"), ("echo", "the prompt"), ("blank", "a space"), ("half", "nan")]
)
def test_a_reward_on_its_own_scale_is_read_between_a_right_answer_and_a_wrong_one(function: str, name: str) -> None:
    found = probe(Questions(("17", "23", "41")), (PythonFunction(f"{PAYING}:{function}"),))
    assert name in paid(found)


def test_a_little_pay_for_being_near_is_no_fault() -> None:
    answers = tuple(str(number) for number in range(100, 140))
    assert paid(probe(Questions(answers), (PythonFunction(f"{PAYING}:closeness"),))) == {}


def test_one_answer_for_nearly_all_tasks_is_said() -> None:
    found = probe(Questions(("7",) * 19 + ("8",)))
    assert found.is_dominated and (found.frequent, found.frequent_share) == ("7", 0.95) and not found.faults


def test_answers_in_a_frame_are_tried_in_it(tmp_path: Path) -> None:
    assert frame_of("<think>1+1=2</think>so \\boxed{2}", "2") == "so \\boxed{@}"
    assert [frame_of("2", "2"), frame_of("", ""), frame_of("x" * 90 + "2", "2")] == ["@", "@", "@"]
    assert "\\boxed{nan}" in [each.text for each in constants("\\boxed{@}", "3")]


SAME = [("1", "1.0"), ("\\boxed{7}", "7"), ("$1,234", "1234"), ("yes", "True"), ("0", "no")]
OTHER = [("yes", "no"), ("nan", "0"), ("", "0"), ("12", "1"), ("1e400", "inf")]


@pytest.mark.parametrize(
    ("one", "other", "same"), [*((*pair, True) for pair in SAME), *((*pair, False) for pair in OTHER)]
)
def test_when_two_answers_are_one(one: str, other: str, same: bool) -> None:
    assert is_same(one, other) is same


def test_the_most_frequent_answer_by_hand() -> None:
    assert most_frequent(["3", "2", "3.0", "4"]) == ("3", 0.5) and most_frequent([]) == ("", 0.0)


@pytest.mark.parametrize(
    ("pay", "is_fault"),
    [
        (ConstantPay("a", 50, 3, 0.06, 50), True),
        (ConstantPay("a", 50, 2, 0.04, 50), False),
        (ConstantPay("a", 50, 0, 0.5, 50), True),
        (ConstantPay("a", 50, 0, 0.5, 50, is_prompt=True), False),  # it may hold a part of the answer
        (ConstantPay("a", 1, 1, 1.0, 1), True),
        (ConstantPay("a", 0, 0, 0.0, 50), False),
        (ConstantPay("a", 50, 7, 0.14, 50, is_some_answer=True), False),  # nearly right, or right too
        (ConstantPay("a", 50, 8, 0.16, 50, is_some_answer=True), True),
        (ConstantPay("a", 22, 4, 0.18, 22, is_some_answer=True, is_cut=True), False),  # 95 %: at least 7 %
        (ConstantPay("a", 8, 8, 1.0, 8, is_some_answer=True, is_cut=True), True),
    ],
)
def test_what_is_a_fault(pay: ConstantPay, is_fault: bool) -> None:
    assert pay.is_fault is is_fault


# ---- time


def test_a_slow_reward_is_not_asked_and_that_is_said() -> None:
    found = probe(Questions(("17", "23")), (PythonFunction(f"{PAYING}:slow"),), seconds=2.0)
    assert found.problem.startswith("one completion takes 0.") and "would take too long" in found.problem


def test_what_is_cut_short_says_at_how_many_tasks() -> None:
    found = probe(Questions(("17", "23")), (PythonFunction(f"{PAYING}:nearly_slow"),), seconds=1.5)
    assert not found.problem and found.is_cut and 0 < found.tasks < found.wanted == 40


# ---- what there is


@pytest.mark.parametrize("dataset", ["complex_arithmetic", "game_of_life_halting", "gcd"])
def test_families_of_reasoning_gym(dataset: str) -> None:
    env = ReasoningGym(dataset)
    found = probe(env, (Checked((env,)),), most=6)
    assert ("nan" in paid(found)) is (dataset != "gcd")


@pytest.mark.parametrize("name", sorted(bundled_envs()))
def test_bundled_episodes_pay_no_constant_completion(name: str) -> None:
    env = bundled_envs()[name](2)
    found = probe(env, (Earned(),) if env.pays else (Checked((env,)),), most=12)
    assert not found.faults and not found.is_dominated
