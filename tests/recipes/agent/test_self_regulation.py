"""Self-regulation: optimal help requests, by hand and by enumeration, and their imitation."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.ask_for_help import HelpOffered, asks
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.generate.rollout import play
from strop.recipes.agent.self_regulation import HelpAtRandom, HelpLabels, HelpTable
from strop.types import SUCCESS, Group, Message, Origin, Outcome, Rollout, Start, Task, Turn
from tests.building import turn
from tests.environments.playing import replied
from tests.generate.talking import policy_of, save_folder

TASK = Task((Message("user", "1+1="),), "2", "test", 1)


def table() -> HelpTable:
    """Two turns. Help in the first changes nothing; in the last it lifts success from 1/4 to 3/4."""
    made = HelpTable()
    for first, second in product((False, True), repeat=2):
        for right in range(4):
            made.add("a:1", [first, second], float(right < (3 if second else 1)))
    return made


def test_help_is_planned_where_it_is_worth_its_price() -> None:
    cheap = table().plan(0.4)
    assert cheap.asks == {"a:1/0": False, "a:1/1": True}, "a tie is an act"
    assert cheap.worth["a:1/1"] == pytest.approx(0.75 - 0.4) and cheap.worth["a:1/0"] == pytest.approx(0.35)
    assert table().expected(cheap) == 1.0
    dear = table().plan(0.5)
    assert not any(dear.asks.values()) and dear.worth["a:1/0"] == 0.25 and table().expected(dear) == 0.0


def test_the_price_is_the_smallest_that_keeps_to_the_budget() -> None:
    assert table().price(1.0) == 0.0
    assert table().price(0.9) == table().price(0.0) == pytest.approx(0.5, abs=1e-12)
    with pytest.raises(ConfigurationError, match="at least 0, got -1"):
        table().price(-1)


def sampled(seed: int) -> HelpTable:
    """A table of rollouts of up to three turns with random outcome probabilities."""
    rng = np.random.default_rng(seed)
    made = HelpTable()
    for _ in range(60):
        length = int(rng.integers(1, 4))
        made.add(f"k:{rng.integers(2)}", [bool(x) for x in rng.random(length) < 0.5], float(rng.random()))
    return made


def values_by_enumeration(made: HelpTable, price: float) -> dict[str, float]:
    """The values of the best of all plans, by enumeration."""

    def value(state: str, plan: dict[str, str]) -> float:
        if state in ("right", "wrong"):
            return float(state == "right")
        row = made.counts[state].get(plan[state])
        if row is None:
            return -9.0
        after = sum(times * value(name, plan) for name, times in row.items()) / sum(row.values())
        return after - (price if plan[state] == "help" else 0.0)

    states = sorted(made.counts)
    plans = [dict(zip(states, each, strict=True)) for each in product(("act", "help"), repeat=len(states))]
    return {state: max(value(state, plan) for plan in plans) for state in states}


@pytest.mark.parametrize("seed", range(3))
def test_no_plan_is_better_than_the_best(seed: int) -> None:
    made = sampled(seed)
    for price in (0.0, 0.05, 0.3):
        found = made.plan(price).worth
        assert {state: found[state] for state in made.counts} == pytest.approx(values_by_enumeration(made, price))


@pytest.mark.parametrize("seed", range(5))
def test_help_requests_fall_as_the_price_rises(seed: int) -> None:
    made = sampled(seed)
    helps = [made.expected(made.plan(price)) for price in np.linspace(0, 1.01, 40)]
    assert all(a >= b - 1e-12 for a, b in pairwise(helps)) and helps[0] > 0 == helps[-1]
    for budget in (0.0, 0.3, 0.7):
        price = made.price(budget)
        assert made.expected(made.plan(price)) <= budget and (
            not price or made.expected(made.plan(price - 1e-9)) > budget
        )


def test_unobserved_decisions_are_never_planned() -> None:
    made = HelpTable()
    made.add("a:1", [True], 0.0)
    made.add("b:1", [False], 0.0)
    assert made.plan(0.9).asks == {"a:1/0": True, "b:1/0": False}
    assert made.plan(0.9).worth["a:1/0"] == pytest.approx(-0.9)


def rollout(name: str, said: list[str], reward: float, outcome: Outcome = Outcome.FINISHED) -> Rollout:
    turns = tuple(replace(turn(2), message=Message("assistant", each)) for each in said)
    made = Rollout(name, TASK, turns, outcome, Origin.GUIDED, reward=reward)
    made.rewards, made.facts = {"outcome": reward}, {SUCCESS: reward}
    return made


def group(number: int = 0) -> Group:
    """Help in the second turn is always right, an act there never; in the first turn it changes nothing."""
    words = {False: "go", True: "help"}
    pairs = list(product((False, True), repeat=2))
    rollouts = [rollout(f"{number}-{i}", [words[a], words[b]], float(b)) for i, (a, b) in enumerate(pairs)]
    rollouts.append(rollout(f"{number}-9", ["help", "go"], 1.0, Outcome.FAILED))
    return Group(number, TASK, rollouts)


def test_decisions_that_are_their_labels_are_imitated() -> None:
    part, shown = HelpLabels(1.0), group()
    part([shown])
    found = [[] if each.advantages is None else each.advantages.tolist() for each in shown.rollouts]
    assert found == [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], []]
    own = shown.rollouts[1].turns[1]
    shown.rollouts[1].turns = (shown.rollouts[1].turns[0], replace(own, versions=np.array([-1, -1])))
    assert part.learn([shown]) == {
        "help_price": 0.0,
        "helps_planned": 1.0,
        "help_states": 0.5,
        "helps": 1.0,
        "helps_own": 0.75,
    }


def test_without_a_budget_every_state_acts() -> None:
    part, shown = HelpLabels(0.0), group()
    part([shown])
    assert shown.rollouts[1].advantages is not None and shown.rollouts[1].advantages.tolist() == [1, 1, 0, 0]
    assert part.learn([shown])["help_price"] == pytest.approx(1.0)
    with pytest.raises(ConfigurationError, match=r"budget >= 0, got -0\.5"):
        HelpLabels(-0.5)


def test_a_restored_table_gives_the_same_labels() -> None:
    part, again = HelpLabels(1.0), HelpLabels(1.0)
    part([group()])
    again.restore(json.loads(json.dumps(part.state())))
    weak = Group(1, TASK, [rollout("1-0", ["go", "help"], 0.0), rollout("1-1", ["go", "go"], 1.0)])
    for each in (part, again):
        each([weak])
    assert part.state() == again.state() and part.learn([weak]) == again.learn([weak])
    assert part.state()["counts"]["test:1/1"]["help"] == {"right": 2.0, "wrong": 1.0}


KEYS = json.dumps({"store": {"red": 3, "blue": 4}, "total": 7})
SUM = Task((Message("user", "sum red blue"),), KEYS, "keyvalue", 2)


def test_help_takes_the_next_step_and_runs_out() -> None:
    env = HelpOffered(KeyValue(2), most=2)
    answers = replied(env, SUM, ["help", " help\n", "help", "<think>3+4=7</think>7"])
    told = [[message.content for message in answer.messages] for answer in answers]
    assert told[:3] == [["<call>get red</call>", "3"], ["<call>get blue</call>", "4"], ["error: no help is left"]]
    assert [answer.done for answer in answers] == [False, False, False, True]
    assert [answer.reward for answer in answers] == [0.0, 0.0, 0.0, 1.0]
    ended = replied(HelpOffered(KeyValue(2)), SUM, ["help"] * 3)[2]
    assert ended.done and ended.reward == 1.0, "help may be the answer itself"
    assert not asks(Message("assistant", "help me")) and (env.name, env.level) == ("keyvalue", 2)
    assert env.check(SUM, "7") == KeyValue(2).check(SUM, "7")
    with pytest.raises(ConfigurationError, match="most >= 0, got -1"):
        HelpOffered(Countdown(2), -1)


def played_with(share: float, policy: Policy, key: int = 5, prefix: tuple[Turn, ...] = ()) -> Rollout:
    dialogue = policy.dialogue(SUM, Start("0", key, prefix))
    return asyncio.run(play(HelpAtRandom(share), HelpOffered(KeyValue(2)), dialogue))


def turns_with(share: float, policy: Policy, key: int = 5, prefix: tuple[Turn, ...] = ()) -> tuple[Turn, ...]:
    return played_with(share, policy, key, prefix).turns


def test_help_is_requested_at_random_and_not_sampled_from_the_policy(tmp_path: Path) -> None:
    engine = Scripted(lambda prompt, key: "9")
    engine.open(save_folder(tmp_path))
    policy = policy_of(tmp_path, engine)
    helped, never = played_with(1.0, policy), turns_with(0.0, policy)
    always = helped.turns
    assert helped.turn_rewards == (0.0, 0.0, 1.0) and helped.origin is Origin.GUIDED, "help earns the reward"
    assert [each.message.content for each in always] == ["help"] * 3 and (always[0].versions == -1).all()
    assert [each.message.content for each in never] == ["9"] and (never[0].versions >= 0).all()
    heard = [[message.content for message in each.told] for each in always]
    assert heard == [[], ["<call>get red</call>", "3"], ["<call>get blue</call>", "4"]]
    again = turns_with(1.0, policy, prefix=always[:1])
    assert [each.prompt.tolist() for each in again] == [each.prompt.tolist() for each in always], (
        "it continues the prefix"
    )
    firsts = [asks(turns_with(0.3, policy, key)[0].message) for key in range(40)]
    assert 4 <= sum(firsts) <= 20 and asks(turns_with(0.3, policy, 7)[0].message) == firsts[7]
    for share, turns in ((1.5, 8), (0.5, 0)):
        with pytest.raises(ConfigurationError, match="0 <= share <= 1 and max_turns >= 1"):
            HelpAtRandom(share, turns)
