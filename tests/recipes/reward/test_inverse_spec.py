"""What a work was asked to be, guessed from the work alone: numbers by hand, and gains that add up to the quality."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.filter.scoring import Scorer
from strop.recipes.reward.inverse_spec import InverseSpecification, QualityGained, WorkBrief, agreement, brief_in
from strop.roles import Reward
from strop.standins.judges.outcomes import guessed, told
from strop.text.llm_prompt import question
from strop.types import Group, IntArray, Message, Outcome, Rollout
from tests.building import TASK, turn
from tests.filter.judges.test_criteria import Tells, says
from tests.recipes.reward.test_rlcf import saying

TRUE = WorkBrief("trade by sea", "students", 4, "ports, winds, insurance")
LINES = "topic: trade by sea\naudience: students\nsize: 4\nthemes: ports, winds, insurance"


def test_agreement_by_hand() -> None:
    assert agreement(TRUE, TRUE) == pytest.approx(1.0) and agreement(TRUE, WorkBrief()) == 0.0
    assert agreement(TRUE, WorkBrief(topic="Sea trade")) == pytest.approx(0.4 * 2 / 3)
    assert agreement(TRUE, WorkBrief(audience="young students")) == pytest.approx(0.25 * 0.7), "one contains the other"
    assert agreement(WorkBrief(audience="young students"), WorkBrief(audience="old students")) == pytest.approx(
        0.25 * 0.4 / 3
    )
    assert agreement(TRUE, WorkBrief(size=8)) == agreement(TRUE, WorkBrief(size=2)) == pytest.approx(0.15 / 2)
    assert agreement(TRUE, WorkBrief(themes="winds ports")) == pytest.approx(0.2), "two thirds of the themes are enough"
    assert agreement(TRUE, WorkBrief(themes="winds")) == pytest.approx(0.2 * 0.5)


def test_how_briefs_are_read() -> None:
    assert brief_in(f"Well:\n{LINES}\nmore") == TRUE
    assert brief_in("Size: 5 slides") == WorkBrief(size=5) and brief_in("* Topic: x\nsize: nan") == WorkBrief(topic="x")
    assert brief_in("who knows") is None and brief_in("topic:\nsize:") is None


def scores(reward: Reward, group: Group) -> list[float | None]:
    scorer = Scorer([reward], seconds=100)
    scorer.places = places
    asyncio.run(scorer(group))
    return [each.reward if each.outcome is not Outcome.FAILED else None for each in group.rollouts]


def places(tokens: IntArray) -> IntArray:
    return np.arange(1, len(tokens) + 1)


def test_the_guesser_sees_the_work_alone_and_nonsense_is_no_guess() -> None:
    task_generator = says(LINES)
    guesser = Tells(lambda parts: {"x": LINES, "y": "topic: sea"}.get(parts["completion"], "nan"))
    group = saying("x", "y", "z", " ")
    assert scores(InverseSpecification(task_generator, guesser), group) == [1.0, pytest.approx(0.4 / 3), None, 0.0]
    assert all(list(parts) == ["completion"] for parts in guesser.asked) and list(task_generator.asked[0]) == ["task"]
    assert "or several different ones, in 'nan'" in group.rollouts[2].error
    group = saying("x")
    assert scores(InverseSpecification(says("?"), guesser), group) == [None] and not group.rollouts[0].rewards
    assert asyncio.run(InverseSpecification(task_generator, guesser)(saying())) == []


class Length(Reward):
    """A hundredth for each character of all turns."""

    is_inline = True  # type: ignore[misc,assignment]
    weight = 3.0  # type: ignore[misc,assignment]

    def __call__(self, group: Group) -> list[float]:
        return [sum(len(t.message.content) for t in each.turns) / 100 for each in group.rollouts]


def talk(outcome: Outcome, *turns: tuple[str, str]) -> Rollout:
    """Turns of what the environment said before, and the completion."""
    made = tuple(
        replace(turn(max(len(completion), 1)), message=Message("assistant", completion), told=(Message("tool", said),))
        for said, completion in turns
    )
    return Rollout("a", TASK, made, outcome, turn_rewards=(0.0,) * (len(turns) - 1) + (1.0,))


def test_gains_add_up_to_the_quality_and_stand_at_their_turns() -> None:
    """Q after each turn: (3 * length / 100 + what the environment paid) / 4."""
    rollout = talk(Outcome.FINISHED, ("go", "aaaa"), ("ok", "bb"), ("Error: no", "cccccc"))
    reward = QualityGained((Length(), Earned()))
    (value,) = scores(reward, Group(0, TASK, [rollout]))
    quality = (3 * 12 / 100 + 1) / 4
    assert rollout.facts["quality"] == pytest.approx(quality)
    assert value == pytest.approx(quality + 0.01 - 0.02 + 0.1), "the first turn worked, the second failed, all is done"
    paid = [each.aux["paid/quality_gained"] for each in rollout.turns]
    gains = [3 * 4 / 400, 3 * 2 / 400, (3 * 6 / 100 + 1) / 4]
    beside = [0.01, -0.02, 0.1]
    for row, gain, extra in zip(paid, gains, beside, strict=True):
        assert row[-1] == pytest.approx(gain + extra) and row[:-1].tolist() == [0.0] * (len(row) - 1)
    cut = talk(Outcome.TRUNCATED, ("go", "aaaa"))
    assert scores(reward, Group(0, TASK, [cut])) == [pytest.approx((0.12 + 1) / 4 - 0.02)]


def test_a_component_that_fails_fails_its_rollout_alone() -> None:
    guesser = Tells(lambda parts: LINES if parts["completion"] == "x" else "nan")
    group = saying("x", "y")
    assert scores(QualityGained((InverseSpecification(says(LINES), guesser),)), group) == [pytest.approx(1.1), None]
    for wrong in ((), (Earned(weight=0.0),)):
        with pytest.raises(ConfigurationError, match="needs components with weights > 0"):
            QualityGained(wrong)


def test_rules_tell_and_guess_sums() -> None:
    true = brief_in(told(question("?", task="47+12+30=?")))
    right = brief_in(guessed(question("?", completion="<think>47+12=59 59+30=89</think>89")))
    assert true == right == WorkBrief("47", "pupils", 2, "12, 30")
    other = brief_in(guessed(question("?", completion="<think>47+13=60</think>60")))
    assert true and other and agreement(true, other) == pytest.approx(0.4 + 0.25 + 0.15 / 2)
    slip = brief_in(guessed(question("?", completion="<think>47+12=59 59+30=99</think>99")))
    assert slip == WorkBrief("47", "pupils", 1, "12"), "nobody can read from it what was asked for"
    assert agreement(true, WorkBrief("47", "pupils", 1, "12")) == pytest.approx(0.4 + 0.25 + 0.15 / 2 + 0.2 * 0.75)
    assert brief_in(guessed(question("?", completion="89"))) == WorkBrief(audience="nobody")
