"""Judges that compare rollouts read all turns and what the environment answered, not the last completion alone."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from strop.filter.rewards.from_environment import Earned
from strop.recipes.reward.arena_learning import Fights
from strop.recipes.reward.fapo.reward import Flawed
from strop.recipes.reward.openrs import RubricWins
from strop.recipes.reward.think_rm import PairwiseLead
from strop.roles import LLMClient, Reward
from strop.types import Group, Message, Outcome, Rollout, Sampling, Task
from tests.building import turn

TASK = Task((Message("user", "Which key opens the box?"),), "red", "box")


class Listening(LLMClient):
    """Keeps what it is asked, and prefers the first."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, messages: list[Message], sampling: Sampling, key: int) -> str:  # type: ignore[override]
        self.asked.append(messages[-1].content)
        code = re.search(r"`answer ([a-z]{6}):`", self.asked[-1])
        is_number = "wrong one" in self.asked[-1] or "-3" in self.asked[-1]
        return f"answer {code[1] if code else ''}: {'-1' if is_number else 'core, first, 3: so'}"


def talked(name: str, tool: str) -> Rollout:
    """Two turns that end alike and differ in what the environment said."""
    first = replace(turn(2), message=Message("assistant", f"look {name}"))
    second = replace(turn(2), message=Message("assistant", "red"), told=(Message("tool", tool),))
    rollout = Rollout(f"0/{name}", TASK, (first, second), Outcome.FINISHED)
    rollout.comparison_group = "fight-0"
    return rollout


@pytest.mark.parametrize("kind", [PairwiseLead, RubricWins, Fights, Flawed])
def test_a_judge_reads_every_turn(kind: type[Reward]) -> None:
    judge = Listening()
    reward = Flawed(Earned(), judge) if kind is Flawed else kind(judge)
    rollouts = [talked("left", "a red key"), talked("right", "nothing here")]
    for each in rollouts:
        each.turn_rewards, each.facts = (0.0, 1.0), {"success": 1.0}
    asyncio.run(reward(Group(0, TASK, rollouts)))  # type: ignore[arg-type]
    assert judge.asked, "rollouts that end alike are not alike"
    read = "\n".join(judge.asked)
    assert all(word in read for word in ("look left", "look right", "a red key", "nothing here"))
