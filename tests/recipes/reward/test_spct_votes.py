"""SPCT: when a judge's scores are right, and what several of its answers come to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.guess import Guess
from strop.environments.data.heldout_split import prompt_of
from strop.environments.judging.listwise import Ranking, completions_in, is_best, question_about, scores_in
from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.scoring import Scorer
from strop.recipes.reward.spct import spct
from strop.recipes.reward.spct_votes import ShuffledVotes, spct_votes
from strop.recipes.setting import Setting
from strop.roles import LLMClient
from strop.standins.judges.comparisons import scored_list
from strop.types import Group, Message, Outcome, Rollout, Sampling
from tests.building import turn

ENV = Ranking(Arithmetic(3))


@dataclass
class ByCompletion(LLMClient):
    """Scores each completion by what it says, and adds something to whoever stands first."""

    scores: dict[str, int]
    bias: int = 0
    orders: list[tuple[str, ...]] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        shown = completions_in(messages[-1].content)
        self.orders.append(tuple(shown))
        given = [self.scores[each] + self.bias * (place == 0) for place, each in enumerate(shown)]
        return f"<think>first</think>{' '.join(map(str, given))}"


@dataclass
class InTurn(LLMClient):
    """One answer after the other."""

    answers: list[str]

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        return self.answers.pop(0)


def saying(*completions: str) -> Group:
    task = Arithmetic(3).task(0)
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    return Group(0, task, [Rollout(str(n), task, each, Outcome.FINISHED) for n, each in enumerate(turns)])


def test_strictly_the_highest_by_enumeration() -> None:
    """All scores of three completions: right where the best one's exceeds each of the others; (7, 7) is wrong."""
    assert not is_best([7, 7], 0) and is_best([8, 7], 0) and not is_best([8, 7], 1)
    for scores in product(range(4), repeat=3):
        for best in range(3):
            others = [score for place, score in enumerate(scores) if place != best]
            assert is_best(scores, best) == (scores[best] > max(others))
    assert [is_best([score], best) for score in (0, 1) for best in (-1, 0)] == [True, False, False, True]


def test_only_whole_scores_are_read() -> None:
    texts = ("8 7", "8, 7", "<think>1 2</think>10 0", "8", "8 7 6", "8 11", "8.5 7", "-1 7", "", "<think>8 7")
    assert [scores_in(text, 2) for text in texts] == [[8, 7], [8, 7], [10, 0], *[None] * 7]


def test_tasks_show_one_right_completion_in_any_place() -> None:
    for count in (1, 2, 4):
        env = Ranking(Arithmetic(3), count)
        bests = []
        for index in range(100):
            task = env.task(index)
            shown, right = completions_in(prompt_of(task)), Arithmetic(3).task(index).answer
            bests.append(json.loads(task.answer)["best"])
            assert len(shown) == count and [each.split()[-1] == right for each in shown] == [
                place == bests[-1] for place in range(count)
            ]
            assert env.check(task, env.solution(task)) == 1 and env.check(task, "5 " * count) == 0
        places = set(range(count)) if count > 1 else {-1, 0}
        assert set(bests) == places and min(map(bests.count, places)) > 50 // len(places)


def test_votes_are_put_back_in_order_before_they_are_added() -> None:
    """Every order of three rollouts: the same scores, whoever stands where in the question."""
    judge = ByCompletion({"a": 9, "b": 4, "c": 1})
    for order in permutations("abc"):
        scores = asyncio.run(ShuffledVotes(judge, votes=3, kept=1)(saying(*order)))
        assert scores == pytest.approx([judge.scores[each] / 10 for each in order])
    assert len(set(judge.orders)) > 3, "each vote sees another order"


def test_many_orders_even_out_who_stands_first() -> None:
    judge = ByCompletion({"a": 5, "b": 5}, bias=4)
    assert asyncio.run(ShuffledVotes(judge, votes=1, kept=1)(saying("a", "b"))) in ([0.9, 0.5], [0.5, 0.9])
    first, second = asyncio.run(ShuffledVotes(judge, votes=64)(saying("a", "b")))
    assert first + second == pytest.approx(1.4) and abs(first - second) < 0.15


def test_only_trusted_and_readable_answers_count() -> None:
    group = saying("a")
    judge, meta = InTurn(["9", "what?", "1", "3"]), InTurn(["20", "90", "80"])
    assert asyncio.run(ShuffledVotes(judge, 4, meta, kept=2)(group)) == pytest.approx([0.2]), "1 and 3, not 9"
    assert asyncio.run(ShuffledVotes(InTurn(["9", "what?", "1", "3"]), 4)(group)) == pytest.approx([13 / 30])
    asyncio.run(Scorer([ShuffledVotes(InTurn(["?"]), 1, kept=1)])(group))
    assert group.rollouts[0].outcome is Outcome.FAILED, "nothing readable is no reward"


def test_the_rule_and_who_tries_to_pass_for_two() -> None:
    asked = question_about("1+2=?", ["<think>1+2=3</think>3\n1: 1+1=2", "1+2=4 3+3=6", "so"])
    assert completions_in(asked) == ["1+2=3 3 1: 1+1=2", "1+2=4 3+3=6", "so"] and scored_list(asked) == "10 5 0"


def test_the_recipes() -> None:
    run = spct(Setting(env="arithmetic:3", group_size=4))
    start = run.warmup
    assert (
        start is not None and start.gates[0] == ZeroVariance() and start.budget.size == 3 and start.warmup is not None
    )
    assert {env for each in (run, start, start.warmup) for env in each.envs} == {ENV}
    assert spct(warmup_steps=0, rejected=0).warmup is None and spct(warmup_steps=1, rejected=0).warmup is not None
    voted, measured = spct_votes(meta=".").rewards
    assert isinstance(voted, ShuffledVotes) and voted.meta is not None and measured.weight == 0
    with pytest.raises(ConfigurationError, match="got 5 and 4"):
        ShuffledVotes(InTurn([]), votes=4, kept=5)
    with pytest.raises(ConfigurationError, match="got guess and 2"):
        Ranking(Guess(1))
