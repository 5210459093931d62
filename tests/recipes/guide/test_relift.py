"""The first wave is the policy's, the next one an expert's and a comparison group of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.guide.relift import ShownWhenLost
from strop.roles import Agent, Player
from strop.types import Group, Outcome, Rollout, Start, Task
from tests.building import TASK, make_group
from tests.clock import run_virtually


@dataclass
class Keeping(Player):
    """Keeps who was asked to play what."""

    played: list[tuple[str, str, Agent | None]] = field(default_factory=list)

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Rollout:
        self.played.append((start.id, start.comparison_group, agent))
        return Rollout(start.id, TASK, (), Outcome.FINISHED)


def played(group: Group, starts: list[Start]) -> tuple[list[str], list[tuple[str, str, Any]]]:
    player = Keeping()
    rollouts, _ = run_virtually(ShownWhenLost(EXPERT)(group, starts, player))
    return [rollout.id for rollout in rollouts], player.played


EXPERT = Demonstrate()
STARTS = [Start("0/3", 3), Start("0/4", 4)]


def test_the_policy_plays_first_and_the_expert_what_follows() -> None:
    ids, asked = played(Group(0, TASK, []), STARTS)
    assert ids == ["0/3", "0/4"] and asked == [("0/3", "", None), ("0/4", "", None)]
    ids, asked = played(make_group([0.0, 0.0]), STARTS)
    assert ids == ["0/3", "0/4"] and asked == [("0/3", "shown", EXPERT), ("0/4", "shown", EXPERT)]
