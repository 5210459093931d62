"""ufo: tries, what they are paid and what repetition costs, by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes import build, recipe_named
from strop.recipes.agent.ufo.environment import TryAgain
from strop.recipes.agent.ufo.recipe import Tries
from strop.types import Group, Message, Observation, Outcome, Rollout, Task
from tests.building import turn
from tests.generate.talking import Recording, policy_of, save_folder

ENV = TryAgain(Arithmetic(2))
TASK = Task((Message("user", "3+4=?"),), "7", "arithmetic", 2)


def played(env: TryAgain, completions: Sequence[str]) -> list[Observation]:
    async def play() -> list[Observation]:
        episode = env.episode()
        await episode.reset(TASK)
        return [await episode.step(Message("assistant", completion)) for completion in completions]

    return asyncio.run(play())


def said(seen: Observation) -> list[str]:
    return [message.content for message in seen.messages]


def rollout(*answers: str, right: int | None = None) -> Rollout:
    turns = tuple(turn(1) for _ in answers)
    for each, answer in zip(turns, answers, strict=True):
        object.__setattr__(each, "message", Message("assistant", answer))
    paid = tuple(float(number == right) for number in range(len(answers)))
    return Rollout("0", TASK, turns, Outcome.FINISHED, turn_rewards=paid)


def test_a_wrong_answer_is_followed_by_one_word_and_the_first_right_one_ends_it() -> None:
    seen = played(ENV, ["5", "6", "7"])
    assert [said(each) for each in seen] == [["wrong, try again"], ["wrong, try again"], []]
    assert [(each.done, each.reward) for each in seen] == [(False, 0.0), (False, 0.0), (True, 1.0)]


def test_after_the_last_try_nothing_is_said_and_a_completion_without_answer_is_no_try() -> None:
    seen = played(TryAgain(Arithmetic(2), tries=2), ["5", "<think>3+4", "6"])
    assert [each.done for each in seen] == [False, False, True]
    assert said(seen[-1]) == [] and seen[-1].reward == 0.0
    empty = played(TryAgain(Arithmetic(2), tries=2), ["<think>"] * 5)
    assert [each.done for each in empty] == [False] * 4 + [True], "two tries and three completions without one"


def test_each_rollout_counts_from_the_start() -> None:
    async def play() -> list[bool]:
        episode = TryAgain(Arithmetic(2), tries=2).episode()
        ends = []
        for _ in range(2):
            await episode.reset(TASK)
            ends += [(await episode.step(Message("assistant", "5"))).done for _ in range(2)]
        await episode.close()
        return ends

    assert asyncio.run(play()) == [False, True, False, True]


def test_the_cards_numbers() -> None:
    """x, x, y with y right: 0.25 - 0.5 * (1 - 2/3); right at once: 1; five equal wrong ones: -0.4."""
    group = Group(
        0,
        TASK,
        [
            rollout("5", "5", "7", right=2),
            rollout("7", right=0),
            rollout("5", "5", "5", "5", "5"),
            rollout("5", "<think>", "7", right=2),
            rollout("<think>"),
            rollout("5", "<think>1</think>5", "6"),
        ],
    )
    found = Tries((ENV,))(group)
    assert found == pytest.approx([0.25 - 0.5 / 3, 1.0, -0.4, 0.5, 0.0, -0.5 / 3])
    assert Tries((ENV,), decay=0.0, price=0.0)(group) == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_expressions_of_one_value_are_one_answer() -> None:
    """4+3+2 and 2+3+4 are right or wrong together."""
    env = TryAgain(Countdown(3))
    task = Task((Message("user", "make 14 from 2 3 4"),), "2+3*4", "countdown", 3)
    group = Group(0, task, [rollout("2+3+4", "4+3+2", "2+3*4", right=2)])
    assert Tries((env,))(group) == pytest.approx([0.25 - 0.5 / 3])


def test_a_conversation_is_as_long_as_the_tries_that_were_asked_for(tmp_path: Path) -> None:
    """Ten answers, and three completions without one, are more turns than a talk has by default."""

    async def score(group: Group) -> None:
        return None

    run = build(recipe_named("ufo"), {"env": "arithmetic:2", "tries": 10})
    policy = policy_of(save_folder(tmp_path), Recording([*["<think>|"] * 3, *["5|"] * 10]))
    play = GroupPlayer(Group(0, TASK, []), policy, run.envs, run.agent, 0, score)
    assert asyncio.run(play(play.another())).turn_rewards == (0.0,) * 13


def test_it_demonstrates_and_keeps_the_envs_split() -> None:
    task = ENV.task(3, heldout=True)
    assert task == Arithmetic(2).task(3, heldout=True) and (ENV.name, ENV.level) == ("arithmetic", 2)

    async def shown() -> float | None:
        episode = ENV.episode()
        await episode.reset(task)
        return (await episode.step(episode.demonstrate())).reward  # type: ignore[attr-defined]

    assert asyncio.run(shown()) == 1.0


def test_bad_input_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="tries >= 1, got 0"):
        TryAgain(Arithmetic(2), tries=0)
    with pytest.raises(ConfigurationError, match="an environment of one completion that judges it, not keyvalue"):
        TryAgain(KeyValue(2))
    for decay, price in ((-0.1, 0.5), (1.1, 0.5), (0.5, -1.0)):
        with pytest.raises(ConfigurationError, match="0 <= decay <= 1 and price >= 0"):
            Tries((ENV,), decay, price)
