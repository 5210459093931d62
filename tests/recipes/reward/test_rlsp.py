"""RLSP: the outcome in three grades, and beside it what search is worth."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.filter.scoring import Scorer
from strop.generate.llm_clients.without_model import Canned, Procedural
from strop.recipes.reward.rlsp import JudgedEffort, SearchEffort, rlsp
from strop.recipes.setting import Setting
from strop.roles import Reward
from strop.standins.judges.outcomes import effort
from strop.types import Group, Message, Outcome, Rollout
from tests.building import turn

TASK = Arithmetic(1).task(0)


def saying(*completions: str) -> Group:
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    rollouts = enumerate(zip(turns, completions, strict=True))
    paid = TASK.answer
    return Group(
        0,
        TASK,
        [
            Rollout(str(n), TASK, t, Outcome.FINISHED, turn_rewards=(float(completion.endswith(f">{paid}")),))
            for n, (t, completion) in rollouts
        ],
    )


@pytest.mark.parametrize("length", [8, 40, 4000])
def test_twice_the_working_earns_half_the_price_back(length: int) -> None:
    """The card's: at equal correctness exactly 1000 / (2 n) more, n a fourth of the characters."""
    short, long = SearchEffort()(saying(f"{'x' * length}</think>7", f"{'x' * 2 * length}</think>7"))
    assert short == pytest.approx(-1000 / (length / 4)) and long - short == pytest.approx(1000 / (2 * length / 4))


def test_the_shortest_working_has_a_bound_and_the_answer_is_none() -> None:
    assert SearchEffort(2.0)(saying("7", "</think>777777777", "", "12345678")) == [-2, -2, -2, -1]
    assert SearchEffort(2.0, least=4.0)(saying("</think>7")) == [-0.5]


def test_effort_is_what_the_judge_says_and_nothing_else_is() -> None:
    rules = JudgedEffort(Procedural(effort))
    tried = "<think>1+1=2 1+1=2 2*3=7 5-1=4</think>9"
    assert asyncio.run(rules(saying(tried, "9", f"{' '.join(f'{n}=1' for n in range(9))}"))) == [0.6, 0, 1]
    group = saying("a", "b", "c")
    judge = Canned({"\na\n[/completion": "70 points", "\nb\n[/completion": "none at all"})
    asyncio.run(Scorer([JudgedEffort(judge, weight=0.2)])(group))
    first, unread, unanswered = group.rollouts
    assert first.reward == pytest.approx(0.14) and first.rewards == {"judged_effort": 0.7}
    assert unread.outcome is unanswered.outcome is Outcome.FAILED, "a judge that says nothing pays nothing"


def paid(rewards: tuple[Reward, ...], *completions: str) -> list[float]:
    group = saying(*completions)
    asyncio.run(Scorer(rewards)(group))
    return [rollout.reward for rollout in group.rollouts]


def test_the_recipes_rewards_by_hand() -> None:
    """Right, wrong and none: 1, 0 and -0.5; minus 2/3 for 12 characters, or 0.8 of it and 0.2 of 1/5."""
    completions = (f"<think>1+2=3</think>{TASK.answer}", "<think>1+2=3</think>99", "<think>1+2=3 4")
    assert paid(rlsp(Setting()).rewards, *completions) == pytest.approx([1 - 2 / 3, -2 / 3, -0.5 - 2 / 3.5])
    judged = paid(rlsp(Setting(), form="judge").rewards, *completions)
    assert judged == pytest.approx([0.8 + 0.04, 0.04, -0.4 + 0.04])


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="got -1 and 1"):
        SearchEffort(price=-1, least=1)
    with pytest.raises(ConfigurationError, match="no form 'lenght'"):
        rlsp(Setting(), form="lenght")
    assert rlsp(Setting(), warmup_steps=0).warmup is None
