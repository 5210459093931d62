"""Datarus-R1's rewards by hand, and the notebook environment they are for."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from strop.environments.bundled.notebook import QUANTITIES, Notebook, table
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.filter.rewards.format import Formatted
from strop.filter.rewards.from_environment import Earned
from strop.recipes.agent.datarus_r1.reward import CosineShift, StepsAndWhole
from strop.types import Group, Message, Outcome, Rollout, Task, ToolCall, Turn
from tests.environments.playing import _demonstrated

TASK = Task((Message("user", "table 1: sum?"),), "3", "notebook")
CALL = ToolCall("python", '{"code": "sum(x)"}')


def rollout(*said: tuple[str, str], paid: float = 0.0) -> Rollout:
    """Completions and what was read before each; a completion with a cell calls it."""
    none, turns = np.zeros(0, np.int64), list[Turn]()
    for completion, heard in said:
        message = Message("assistant", completion, (CALL,) if "<call>" in completion else ())
        told = (Message("tool", heard),) if heard else ()
        turns.append(Turn(none, none, np.zeros(0, np.float32), none, message, told=told))
    return Rollout("0/0", TASK, tuple(turns), Outcome.FINISHED, turn_rewards=(paid,))


CELL = "<think>a</think><call>python sum(x)</call>"
GOOD = rollout((CELL, ""), (CELL, "ok"), ("<think>b</think>3", "3"), paid=1.0)
HALF = rollout((CELL, ""), (CELL, "error: NameError"), ("4", "3"))
NONE = rollout(("<think>b</think>3", ""), paid=1.0)
UNREAD = rollout((CELL, ""))
ONE = rollout((CELL, ""), ("4", "3"))
ALL = [GOOD, HALF, NONE, UNREAD, ONE]


def test_steps_and_whole_by_hand() -> None:
    """Two good steps and right; one good of two and wrong; no step and right; output never read; one good step."""
    assert StepsAndWhole(Earned())(Group(0, TASK, ALL)) == [1.0, 0.25, 0.5, 0.0, 0.5]
    assert [each.facts["steps"] for each in ALL] == [2.0, 2.0, 0.0, 0.0, 1.0]
    assert [each.facts["good_steps"] for each in ALL] == [1.0, 0.5, 0.0, 0.0, 1.0]


def test_layout_counts_first_and_last_not_at_all() -> None:
    """At 0, 1/4, 1/2, 3/4 and 1 of the run layout has 1, 0.8536, 0.5, 0.1464 and 0 of the reward."""
    reward = CosineShift(Formatted(), StepsAndWhole(Earned()), total=8)
    shares = [reward.share(version) for version in (0, 2, 4, 6, 8, 20)]
    assert shares == pytest.approx([1.0, 0.853553, 0.5, 0.146447, 0.0, 0.0], abs=1e-6)
    layout, rest = [1.0, 2 / 3, 1.0, 1.0, 0.5], [1.0, 0.25, 0.5, 0.0, 0.5]
    for version, share in zip((0, 2, 4, 6, 8, 20), shares, strict=True):
        scores = reward(Group(0, TASK, ALL, version=version))
        assert scores == pytest.approx([share * s + (1 - share) * h for s, h in zip(layout, rest, strict=True)])
        assert (
            scores[0] == pytest.approx(1.0) and ALL[0].facts["first_share"] == share
        )  # equal parts: no weight matters
    assert reward(Group(0, TASK, [rollout()]))[0] == 0.0  # an empty episode has no blocks
    with pytest.raises(ConfigurationError, match="total >= 1, got 0"):
        CosineShift(Formatted(), Earned(), 0)


@pytest.mark.parametrize("level", [1, 2])
def test_a_table_takes_as_many_cells_as_its_level(level: int) -> None:
    env = Notebook(level)
    task = env.task(0)

    async def shown() -> tuple[list[Message], list[float]]:
        try:
            return await _demonstrated(env.episode(), task)
        finally:
            await env.cells.close()

    said, paid = asyncio.run(shown())
    _, number, name = prompt_of(task).split()
    (quantity,) = (each for each in QUANTITIES[level] if each.name == name.removesuffix("?"))
    x = table(int(number.removesuffix(":")))
    assert task.answer == str(quantity.of(x)) and paid == [None] * level + [1.0]
    assert [message.content for message in said if message.role == "tool"][-1] == task.answer
    assert [len(message.tool_calls) for message in said if message.role == "assistant"] == [1] * level + [0]
    assert not any(str(value) in prompt_of(task) for value in x if value > 99)


def test_quantities_are_what_their_cells_compute() -> None:
    """Every quantity, on numbers worked by hand."""
    x = [7, 2, 9, 4]
    assert {each.name: each.of(x) for level in QUANTITIES for each in QUANTITIES[level]} == {
        **{"sum": 22, "top": 9, "low": 2, "count": 4},
        **{"range": 7, "mean": 5, "middle": 7},
    }
    with pytest.raises(ConfigurationError, match="levels 1 to 2, got 3"):
        Notebook(3)
