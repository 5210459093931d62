"""A world model's reward over sets of changes, and the environment that is predicted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from strop.environments.bundled.next_state import NextState, acted, changes, items_in, store_of
from strop.errors import ConfigurationError
from strop.recipes.reward.rlvr_world import ChangeF1, rlvr_world
from strop.recipes.setting import Setting
from strop.types import Group, Message, Outcome, Rollout, Task
from tests.building import turn


def paid(answer: str, *completions: str, form: str = "f1") -> list[float]:
    task = Task((Message("user", "?"),), answer, "next_state", 1)
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    group = Group(0, task, [Rollout(str(n), task, each, Outcome.FINISHED) for n, each in enumerate(turns)])
    return ChangeF1(form)(group)


def test_by_hand() -> None:
    """Two true items: with as many junk ones 2/3; one of them alone 2/3; one and one junk 1/2."""
    completions = ("red= blue=8", "blue=8 red=", "red= blue=8 a=1 b=2", "red=", "red= blue=9", "none", "what?", "")
    assert paid("red= blue=8", *completions) == pytest.approx([1, 1, 2 / 3, 2 / 3, 1 / 2, 0, 0, 0])
    assert paid("red= blue=8", *completions, form="exact") == [1, 1, 0, 0, 0, 0, 0, 0]
    assert paid("none", "none", "a=1", "", "none a=1") == [1, 0, 0, 0], "nothing predicted where nothing changes"
    assert paid("a=1", "a=1 a=1 a=1", "<think>a=1", "<think>b=2</think>a=1") == [1, 0, 1]
    assert paid("a=1", "a=1 or so", "it is a=1") == [0, 0], "words beside items: the completion cannot be read"


@pytest.mark.parametrize(
    ("action", "expected"),
    [("set red 7", "red=7"), ("set red 3", "none"), ("set gold 1", "gold=1"), ("move red blue", "red= blue=8"),
     ("drop blue", "blue="), ("look red", "none")],
)  # fmt: skip
def test_actions_by_hand(action: str, expected: str) -> None:
    store = {"red": 3, "blue": 5}
    assert changes(store, acted(store, action)) == expected and store == {"red": 3, "blue": 5}


def test_tasks_follow_from_what_they_show() -> None:
    for level in range(1, 7):
        env, actions, numbers = NextState(level), Counter[str](), set[int]()
        for index in range(200):
            task = env.task(index)
            store, action = store_of(task)
            assert len(store) == level + 1 and task.answer == changes(store, acted(store, action))
            assert env.check(task, env.solution(task)) == 1 and env.check(task, "red") == 0
            actions[action.split()[0]] += 1
            numbers |= set(store.values())
        assert len(actions) == 4 and min(actions.values()) > 30
        assert numbers == set(range(10)) and env.is_inline
    assert NextState(2).answer("b=1 a=2") == "a=2 b=1" and NextState(2).answer("none") == "none"
    assert NextState(2).answer("so") == "" and items_in("none") == set()


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no form 'f2'"):
        ChangeF1("f2")
    with pytest.raises(ConfigurationError, match="levels 1 to 6, got 7"):
        NextState(7)
    assert rlvr_world(Setting(env="next_state:1"), warmup_steps=0).warmup is None
    assert rlvr_world(form="exact").rewards[0] == ChangeF1("exact")


def test_envs_without_changes_are_refused_before_anything_is_tried() -> None:
    def told(env: str) -> list[str]:
        return ChangeF1().problems(rlvr_world(Setting(env=env)))

    assert told("next_state:3+next_state:1") == []
    assert told("next_state:3+arithmetic:4") == [
        "answers of arithmetic:4 are not state changes: use an environment such as next_state:3"
    ]
