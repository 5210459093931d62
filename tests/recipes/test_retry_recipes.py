"""ufo: tries, what they are paid and what repetition costs, by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.wrappers.retry import TryAgain
from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes import build, recipe_named
from strop.recipes.agent.ufo import Tries
from strop.types import Group, Message, Observation, Outcome, Task, Trajectory
from tests.building import turn
from tests.generate.talking import Recording, policy_of, save_folder

WORLD = TryAgain(Arithmetic(2))
TASK = Task((Message("user", "3+4=?"),), "7", "arithmetic", 2)


def played(world: TryAgain, replies: Sequence[str]) -> list[Observation]:
    async def play() -> list[Observation]:
        environment = world.environment()
        await environment.reset(TASK)
        return [await environment.step(Message("assistant", reply)) for reply in replies]

    return asyncio.run(play())


def said(seen: Observation) -> list[str]:
    return [message.content for message in seen.messages]


def attempt(*answers: str, right: int | None = None) -> Trajectory:
    turns = tuple(turn(1) for _ in answers)
    for each, answer in zip(turns, answers, strict=True):
        object.__setattr__(each, "message", Message("assistant", answer))
    paid = tuple(float(number == right) for number in range(len(answers)))
    return Trajectory("0", TASK, turns, Outcome.FINISHED, turn_rewards=paid)


def test_a_wrong_answer_is_followed_by_one_word_and_the_first_right_one_ends_it() -> None:
    seen = played(WORLD, ["5", "6", "7"])
    assert [said(each) for each in seen] == [["wrong, try again"], ["wrong, try again"], []]
    assert [(each.done, each.reward) for each in seen] == [(False, 0.0), (False, 0.0), (True, 1.0)]


def test_after_the_last_try_nothing_is_said_and_a_reply_without_answer_is_no_try() -> None:
    seen = played(TryAgain(Arithmetic(2), tries=2), ["5", "<think>3+4", "6"])
    assert [each.done for each in seen] == [False, False, True]
    assert said(seen[-1]) == [] and seen[-1].reward == 0.0
    empty = played(TryAgain(Arithmetic(2), tries=2), ["<think>"] * 5)
    assert [each.done for each in empty] == [False] * 4 + [True], "two tries and three replies without one"


def test_each_attempt_counts_from_the_start() -> None:
    async def play() -> list[bool]:
        environment = TryAgain(Arithmetic(2), tries=2).environment()
        ends = []
        for _ in range(2):
            await environment.reset(TASK)
            ends += [(await environment.step(Message("assistant", "5"))).done for _ in range(2)]
        await environment.close()
        return ends

    assert asyncio.run(play()) == [False, True, False, True]


def test_the_cards_numbers() -> None:
    """x, x, y with y right: 0.25 - 0.5 * (1 - 2/3); right at once: 1; five equal wrong ones: -0.4."""
    group = Group(
        0,
        TASK,
        [
            attempt("5", "5", "7", right=2),
            attempt("7", right=0),
            attempt("5", "5", "5", "5", "5"),
            attempt("5", "<think>", "7", right=2),
            attempt("<think>"),
            attempt("5", "<think>1</think>5", "6"),
        ],
    )
    found = Tries((WORLD,))(group)
    assert found == pytest.approx([0.25 - 0.5 / 3, 1.0, -0.4, 0.5, 0.0, -0.5 / 3])
    assert Tries((WORLD,), decay=0.0, price=0.0)(group) == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_expressions_of_one_value_are_one_answer() -> None:
    """4+3+2 and 2+3+4 are right or wrong together."""
    world = TryAgain(Countdown(3))
    task = Task((Message("user", "make 14 from 2 3 4"),), "2+3*4", "countdown", 3)
    group = Group(0, task, [attempt("2+3+4", "4+3+2", "2+3*4", right=2)])
    assert Tries((world,))(group) == pytest.approx([0.25 - 0.5 / 3])


def test_a_conversation_is_as_long_as_the_tries_that_were_asked_for(tmp_path: Path) -> None:
    """Ten answers, and three replies without one, are more turns than a talk has by default."""

    async def score(group: Group) -> None:
        return None

    run = build(recipe_named("ufo"), {"world": "arithmetic:2", "tries": 10})
    policy = policy_of(save_folder(tmp_path), Recording([*["<think>|"] * 3, *["5|"] * 10]))
    play = GroupPlayer(Group(0, TASK, []), policy, run.worlds, run.agent, 0, score)
    assert asyncio.run(play(play.another())).turn_rewards == (0.0,) * 13


def test_it_demonstrates_and_keeps_the_worlds_split() -> None:
    task = WORLD.task(3, heldout=True)
    assert task == Arithmetic(2).task(3, heldout=True) and (WORLD.name, WORLD.level) == ("arithmetic", 2)

    async def shown() -> float | None:
        environment = WORLD.environment()
        await environment.reset(task)
        return (await environment.step(environment.demonstrate())).reward  # type: ignore[attr-defined]

    assert asyncio.run(shown()) == 1.0


def test_bad_input_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="tries >= 1, got 0"):
        TryAgain(Arithmetic(2), tries=0)
    with pytest.raises(ConfigurationError, match="a world of one reply that judges it, not keyvalue"):
        TryAgain(KeyValue(2))
    for decay, price in ((-0.1, 0.5), (1.1, 0.5), (0.5, -1.0)):
        with pytest.raises(ConfigurationError, match="0 <= decay <= 1 and price >= 0"):
            Tries((WORLD,), decay, price)
