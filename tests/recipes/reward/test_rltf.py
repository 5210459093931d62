"""RLTF: what programs are told, whole and by line, and the advantage of each token against the greedy one; by hand."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from strop.environments.code.cases import Cases
from strop.environments.code_execution import Finding, Program, Trial
from strop.filter.scoring import Scorer
from strop.recipes.reward.rltf import TokenFeedback, UnitTestFeedback, blamed, coarse
from strop.types import Group, Message, Origin, Outcome, Task
from tests.filter.completions import said
from tests.filter.test_span_rewards import one_letter_each

TASK = Task((Message("user", "?"),), str(Cases("f", ([1], [2], [3], [4]), (2, 4, 6, 8))), "programs", 1)


def trial(finding: Finding, passed: int = 0, of: int = 10, line: int = 0, error: str = "") -> Trial:
    return Trial(finding, (True,) * passed + (False,) * (of - passed), line, error)


def test_the_numbers_of_the_card() -> None:
    assert coarse(trial(Finding.RIGHT, 10)) == 1.0
    assert coarse(trial(Finding.WRONG, 5)) == pytest.approx(0.35)
    assert coarse(trial(Finding.WRONG, 0)) == -0.3
    assert coarse(trial(Finding.WRONG, 5), is_adaptive=False) == -0.3
    assert coarse(trial(Finding.ERROR, 5)) == -0.6 and coarse(trial(Finding.SYNTAX)) == -1.0
    assert [coarse(trial(each)) for each in (Finding.TIME, Finding.MEMORY, Finding.OUTPUT)] == [-0.6] * 3


def test_what_is_to_blame() -> None:
    completion = "so ```\na\nbb\nccc\n```"
    program = Program("a\nbb\nccc\n", 7)
    assert blamed(trial(Finding.ERROR, line=2, error="TypeError"), program, completion) == (9, 11)
    assert completion[9:11] == "bb"
    assert blamed(trial(Finding.SYNTAX, line=1, error="SyntaxError"), program, completion) == (7, 8)
    everywhere = (0, len(completion))
    assert blamed(trial(Finding.SYNTAX, line=3, error="SyntaxError"), program, completion) == everywhere
    assert blamed(trial(Finding.TIME), program, completion) == everywhere
    assert blamed(trial(Finding.ERROR, line=2, error="RecursionError"), program, completion) == everywhere
    nowhere = [trial(Finding.WRONG, 3), trial(Finding.RIGHT, 10), trial(Finding.ERROR), trial(Finding.MEMORY)]
    nowhere += [trial(Finding.SYNTAX, line=3, error="IndentationError"), trial(Finding.ERROR, line=9, error="X")]
    assert [blamed(each, program, completion) for each in nowhere] == [None] * 6


# four programs of as many letters as tokens
BROKEN = "def f(x):\n y=1\n y=)\n return y"  # syntax, line 3 of 4
RAISES = "def f(x):\n y=0\n x/y\n return y"  # a runtime error in line 3
HALF = "def f(x):\n return 2*x if x<3 else 0"
RIGHT = "def f(x):\n return 2*x"


def with_advantages(greedy: float | None, shown: int | None = None) -> Group:
    group = said(TASK, BROKEN, RAISES, HALF, RIGHT, RIGHT)
    group.rollouts[4].outcome = Outcome.FAILED
    if shown is not None:
        group.rollouts[shown].origin = Origin.TEACHER
    reward = UnitTestFeedback()

    async def asked() -> None:
        scorer = Scorer([reward])
        scorer.places = one_letter_each
        await scorer(group)
        await reward.trials.close()

    asyncio.run(asked())
    for rollout in group.rollouts:
        rollout.facts |= {} if greedy is None else {"greedy": greedy}
    TokenFeedback()([group])
    return group


def test_each_token_is_told_what_it_did_against_the_greedy_program() -> None:
    """Line 3 of the broken program: -1 - 0.3 - b; its other tokens: -1 - b."""
    group = with_advantages(0.35)
    for text, told, rollout in zip((BROKEN, RAISES), (-1.0, -0.6), group.rollouts, strict=False):
        start, end = text.index("\n", 12) + 1, text.rindex("\n")
        expected = np.full(len(text), told - 0.35)
        expected[start:end] -= 0.3
        assert rollout.advantages == pytest.approx(expected, abs=1e-6)
        assert rollout.reward == pytest.approx(told - 0.3 * (end - start), abs=1e-5)
    assert group.rollouts[2].advantages == pytest.approx(np.zeros(len(HALF)), abs=1e-6)  # 0.35 itself
    assert group.rollouts[3].advantages == pytest.approx(np.full(len(RIGHT), 0.65), abs=1e-6)
    assert group.rollouts[4].advantages is None
    assert [rollout.facts["feedback"] for rollout in group.scored] == pytest.approx([-1.0, -0.6, 0.35, 1.0])


def test_without_a_greedy_program_siblings_are_the_baseline() -> None:
    group = with_advantages(None)
    assert group.rollouts[3].advantages == pytest.approx(np.full(len(RIGHT), 1.0 + 0.25 / 4), abs=1e-6)
    group = with_advantages(
        None, shown=3
    )  # (-1 - 0.6 + 0.35) / 3: the environment's own program is no baseline of the policy
    assert group.rollouts[2].advantages == pytest.approx(np.full(len(HALF), 0.35 + 1.25 / 3), abs=1e-6)
