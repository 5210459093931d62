"""HardTests: which written tests stay, whom they catch, and precision and recall by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from strop.environments.bundled.programs import SHAPES, Programs
from strop.environments.code.cases import Cases, cases_of
from strop.environments.code_execution import Trials
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.judges.batch_ask import text_of
from strop.recipes.reward.hardtests import AgreedTests, HardTests, agreed, hardtests, precision_and_recall
from strop.roles import LLMClient
from strop.standins.test_cases import careless, direct, hacking, nested, special, straight, written_validator
from strop.text.llm_prompt import question
from strop.types import Group, Message, Outcome, Sampling, Task
from tests.filter.completions import said

DOUBLE = Task((Message("user", "double x"),), str(Cases("f", ([1],), (2,))), "programs", 1)


@dataclass(frozen=True)
class Says(LLMClient):
    text: str

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        return self.text


RIGHT, ALSO, OFF = Says("def f(x): return 2*x"), Says("def f(x): return x+x"), Says("def f(x): return abs(2*x)")
ANY = Says("def f(x): return isinstance(x,int)")


def written(tests: AgreedTests, task: Task = DOUBLE) -> tuple[Cases, int]:
    async def asked() -> tuple[Cases, int]:
        trials = Trials()
        try:
            return await tests(task, "f", trials)
        finally:
            await trials.close()

    return asyncio.run(asked())


def test_what_oracles_agree_on() -> None:
    one, two, failed = '["value", 1]', '["value", 2]', '["error", 0, "X"]'
    assert agreed([one, one], 2) == one and agreed([one, two], 2) is None and agreed([one, one, two], 3) == one
    assert agreed([one, two, failed], 3) is None and agreed([one], 1) == one and agreed([failed], 1) is None
    assert agreed([one, failed], 2) is None and agreed([], 2) is None and agreed([one, one, two, two], 4) is None
    for torn in ('["value", ', '["value", [1', '["value", 1] ', '["value", 1, 2]', '["value", ' + "[" * 9999):
        assert agreed([torn], 1) is None and agreed([torn, torn, one], 3) is None, (
            "cut off, or not as the sandbox spells"
        )


def test_a_test_on_which_oracles_differ_is_never_written() -> None:
    """2x and |2x| differ below 0; a second copy of either is no second opinion."""
    inputs = Says('[3, -1, "a", 3, 0]')
    cases, count = written(AgreedTests((inputs, Says("[7]"), Says("none")), ANY, (RIGHT, OFF, RIGHT, OFF)))
    assert (cases.inputs, cases.outputs, count) == (([3], [0], [7]), (6, 0, 14), 5)
    three, _ = written(AgreedTests((inputs,), ANY, (RIGHT, OFF, ALSO)))
    assert (three.inputs, three.outputs) == (([3], [-1], [0]), (6, -2, 0))
    alone, _ = written(AgreedTests((inputs,), ANY, (OFF,)))
    assert alone.outputs == (6, 2, 0)
    with pytest.raises(LLMClientError, match="agree on none of 1 tests for task"):
        written(AgreedTests((Says("[-1]"),), ANY, (RIGHT, OFF)))
    with pytest.raises(ConfigurationError, match="got 0 and 1"):
        AgreedTests((), ANY, (RIGHT,))


def test_precision_and_recall_by_hand() -> None:
    """3 pass and are right, 1 passes and is wrong, 2 are right and fail, 4 neither."""
    table = [(True, True)] * 3 + [(True, False)] + [(False, True)] * 2 + [(False, False)] * 4
    assert precision_and_recall(table) == {"test_precision": 3 / 4, "test_recall": 3 / 5}
    assert precision_and_recall([(False, True)]) == {"test_recall": 0.0}
    assert precision_and_recall([(True, False)]) == {"test_precision": 0.0}
    assert precision_and_recall([(False, False)]) == precision_and_recall([]) == {}


@pytest.mark.parametrize(
    ("level", "ends", "far", "valid"),
    [
        (2, [0, 1, -1, 99, -99], [10**9, -(10**9), 10**6, -(10**5), 10**30], "int) and abs(x)<=1000000000"),
        (4, [[], [0], [3, 3, 3], [-5]], [list(range(100)), [9, -9] * 40, list(range(2700))], "list) and len(x)<=300"),
        (6, ["", "a", "aaa"], ["ab" * 50, "f" * 99, "a" * 2700], "str) and len(x)<=300"),
    ],
)
def test_what_is_written_of_each_kind(level: int, ends: list[object], far: list[object], valid: str) -> None:
    """Ten plain ones; the ends of what there is and ten more; large ones, of which the last may not be asked about."""
    asked = question("?", task=text_of(Programs(level).task(3)))
    plain, mixed, large = (json.loads(write(asked)) for write in (direct, special, hacking))
    assert large == far and mixed[: len(ends)] == ends and len(plain) == len(mixed) - len(ends) == 10
    kinds = {type(each) for each in (*plain, *mixed)}
    assert kinds == {type(ends[0])} and plain != mixed[len(ends) :] and json.loads(direct(asked)) == plain
    assert written_validator(asked) == f"def f(x):\n return isinstance(x,{valid}"


def test_hard_inputs_catch_what_plain_ones_let_pass() -> None:
    """Programs that count to x, or know small numbers alone; the environment's verdict is beside them."""
    task = next(task for task in map(Programs(1).task, range(99)) if "minus" in text_of(task))
    right = cases_of(task).solution
    slow = f"{right.replace('return', 'y=')}\n for _ in range(abs(x)): pass\n return y"
    small = f"{right}\ng=f\ndef f(x): return g(x) if abs(x)<1000 else 0"
    scores = {}
    for is_hard in (True, False):
        (reward,) = hardtests(is_hard=is_hard).rewards
        assert isinstance(reward, HardTests)
        group = said(task, right, slow, small, "f=1", right)
        group.rollouts[4].outcome = Outcome.FAILED
        group.rollouts = group.scored
        for rollout, paid in zip(group.rollouts, (1.0, 1.0, 1.0, 0.0), strict=True):
            rollout.turn_rewards = (paid,)

        scores[is_hard] = asyncio.run(_asked(reward, group))
        kept = {rollout.facts["tests_kept"] for rollout in group.rollouts}
        assert (kept == {1.0}) is not is_hard
        assert reward.learn([group]) == {"test_precision": 1.0, "test_recall": 1 / 3 if is_hard else 1.0}
    assert scores == {True: [1.0, 0.0, 0.0, 0.0], False: [1.0, 1.0, 1.0, 0.0]}


async def _asked(reward: HardTests, group: Group) -> list[float]:
    found = await reward(group)
    await reward.trials.close()
    return found


def test_rules_write_programs_that_are_right_in_two_spellings() -> None:
    async def tried() -> tuple[int, int]:
        trials, wrong, slips = Trials(), 0, 0
        for level in SHAPES:
            for task in map(Programs(level).task, range(4)):
                asked = question("?", task=text_of(task))
                assert straight(asked) == cases_of(task).solution and nested(asked) != straight(asked)
                wrong += not (await trials.of(nested(asked), cases_of(task))).is_right
                slips += careless(asked) != straight(asked)
                allowed = await trials.said(written_validator(asked), "f", cases_of(task).inputs)
                assert allowed == ['["value", true]'] * 10
        await trials.close()
        return wrong, slips

    wrong, slips = asyncio.run(tried())
    assert wrong == 0 and slips >= 4
