"""SEM: the share of demonstrations that search after a right answer."""

from __future__ import annotations

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.format.think_tags import final_answer
from strop.environments.tools.search_tool import Retrieval
from strop.errors import ConfigurationError
from strop.recipes.agent.sem import Rechecked
from strop.types import Task
from tests.environments.playing import demonstrated


def searched(env: Rechecked, task: Task) -> bool:
    """Whether a demonstration searches; each of its completions is right, and it is rewarded once."""
    said, paid = demonstrated(env, task)
    completions = [message for message in said if message.role == "assistant"]
    assert [final_answer(completion.content) for completion in completions] == [task.answer] * len(
        completions
    ) and paid[-1] == 1.0
    return [bool(completion.tool_calls) for completion in completions] == [True, False]


def test_a_share_of_the_demonstrations_searches_after_the_answer() -> None:
    tasks = [Arithmetic(2).task(index) for index in range(200)]
    counts = {}
    for share in (0.0, 0.5, 1.0):
        env = Rechecked(Arithmetic(2), (Retrieval(),), share=share)
        first = [searched(env, task) for task in tasks]
        assert first[:20] == [searched(env, task) for task in tasks[:20]], "the same tasks every time"
        counts[share] = sum(first)
    assert counts[0.0] == 0 and counts[1.0] == 200 and 75 < counts[0.5] < 125
    with pytest.raises(ConfigurationError, match=r"share from 0 to 1, got 1\.5"):
        Rechecked(Arithmetic(2), (Retrieval(),), share=1.5)
