"""Router-R1's reward by hand, the experts, and the market they stand in."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from strop.environments.bundled.market import Market
from strop.environments.data.heldout_split import prompt_of
from strop.environments.tools.paid_experts import EXPERTS, Experts, able, answered_by
from strop.environments.tools.tool import WrongCall
from strop.errors import ConfigurationError
from strop.recipes.agent.router_r1 import Routed
from strop.types import Group, Message, Outcome, Rollout, Task, ToolCall, Turn
from tests.environments.playing import demonstrated

TASK = Task((Message("user", "1+2=?"),), "3", "market")


def call(expert: str, question: str = "1+2=?") -> ToolCall:
    return ToolCall("ask", json.dumps({"expert": expert, "question": question}))


def rollout(
    answer: str, *calls: ToolCall, outcome: Outcome = Outcome.FINISHED, last: tuple[ToolCall, ...] = ()
) -> Rollout:
    none = np.zeros(0, np.int64)
    said = [Message("assistant", "", (each,)) for each in calls] + [Message("assistant", answer, last)]
    turns = tuple(Turn(none, none, np.zeros(0, np.float32), none, message) for message in said)
    return Rollout("0/0", TASK, turns, outcome)


def group(*rollouts: Rollout, number: int = 0) -> Group:
    return Group(number, TASK, list(rollouts))


def test_form_before_answer_before_price() -> None:
    reward = Routed(share=0.5)
    malformed = [
        rollout("3", ToolCall("", "")),  # a call that could not be read
        rollout("3", call("pink")),
        rollout("3", call("red", " ")),
        rollout(""),
        rollout("3", outcome=Outcome.TRUNCATED),
        rollout("3", last=(call("red"),)),
    ]
    assert reward(group(*malformed)) == [-1.0] * 6
    assert reward(group(rollout("4", call("red")), rollout("4", call("gold")))) == [0.0, 0.0]  # whatever it cost
    assert reward(group(rollout("3", call("gold")))) == [0.75]  # nothing to compare with: half of a half
    assert reward.is_inline and Routed(share=0.0)(group(rollout("3", call("gold")), rollout("3"))) == [1.0, 1.0]


def test_cheapness_by_hand() -> None:
    """Prices 1, 4 and 16 have square roots 1, 2 and 4; of these three the quantiles are 1.1 and 3.8."""
    reward = Routed(share=1.0)
    draw = group(rollout("3", call("red")), rollout("0", call("blue")), rollout("", call("gold")))
    lost = rollout("3", outcome=Outcome.FAILED)
    assert reward.learn([Group(0, TASK, [*draw.rollouts, lost])]) == {"price_spread": 3.0}
    assert [reward.cheapness(price) for price in (1.0, 4.0, 16.0)] == pytest.approx([1.0, 1 - 0.9 / 2.7, 0.0])
    right = group(rollout("3", call("blue")), rollout("3", call("red"), call("red"), call("red"), call("red")))
    assert reward(right) == pytest.approx([1 - 0.9 / 2.7] * 2)  # four cheap ones cost as much as one of 4
    facts = {"price": 4.0, "price_score": pytest.approx(1 - 0.9 / 2.7)}
    assert [each.facts for each in right.rollouts] == [facts | {"asked": 1.0}, facts | {"asked": 4.0}]


def test_only_the_last_prices_count_and_order_of_arrival_does_not() -> None:
    first, second = group(rollout("3", call("red")), number=0), group(rollout("3", call("gold")), number=1)
    one, other = Routed(1.0, window=2), Routed(1.0, window=2)
    for each, draws in ((one, [[first, second]]), (other, [[second, first]])):
        for draw in draws:
            each.learn(draw)
    assert one.state() == other.state() == {"paid": [1.0, 4.0]}
    one.learn([second])
    assert one.state() == {"paid": [4.0, 4.0]} and one.cheapness(1.0) == 0.5
    again = Routed(1.0, window=2)
    again.restore(json.loads(json.dumps(other.state())))
    assert again.cheapness(4.0) == other.cheapness(4.0) != 0.5
    for share, window in ((1.5, 10), (-0.1, 10), (0.5, 1)):
        with pytest.raises(ConfigurationError, match="share from 0 to 1 and window >= 2"):
            Routed(share, window)


def test_experts_know_what_they_are_paid_for() -> None:
    for question, right in (("1+2=?", "3"), ("12+7=?", "19"), ("123+4=?", "127")):
        answers = {name: answered_by(name, question) for name in EXPERTS}
        assert {name for name, said in answers.items() if said == right} == set(able(question))
        assert answers == {name: answered_by(name, question) for name in EXPERTS}
    assert [able(question)[0] for question in ("1+2=?", "12+7=?", "123+4=?")] == ["red", "blue", "gold"]
    for question in ("", "who?", "1/3"):
        with pytest.raises(WrongCall):
            asyncio.run(Experts().call({"expert": "gold", "question": question}))


def test_a_market_has_sums_of_all_sizes_and_shows_able_experts() -> None:
    env, shown = Market(3), list[str]()
    tasks = [env.task(index) for index in range(60)]
    assert {len(able(prompt_of(task))) for task in tasks} == {1, 2, 3}
    assert not {prompt_of(task) for task in tasks} & {prompt_of(env.task(index, True)) for index in range(60)}
    for task in tasks:
        said, paid = demonstrated(env, task)
        assert paid == [None, 1.0] and price_of_message(said[0]) > 0
        shown.append(json.loads(said[0].tool_calls[0].arguments)["expert"])
    assert set(shown) == set(EXPERTS)
    with pytest.raises(ConfigurationError, match="levels 1 to 3, got 4"):
        Market(4)
    assert all(len(able(prompt_of(Market(1).task(index)))) == 3 for index in range(20))


def price_of_message(message: Message) -> float:
    return Routed().price_of(rollout("3", *message.tool_calls))
