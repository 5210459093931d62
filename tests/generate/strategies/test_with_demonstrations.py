from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.roles import Agent
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Group, Origin, Outcome, Rollout, Start
from tests.building import TASK
from tests.tiny_models import save_pocket_like


def test_the_last_rollouts_are_the_experts() -> None:
    played: list[tuple[str, Agent | None]] = []

    async def play(start: Start, agent: Agent | None = None) -> Rollout:
        played.append((start.id, agent))
        return Rollout(start.id, TASK, (), Outcome.FINISHED)

    expert = Demonstrate()
    starts = [Start(str(index), index) for index in range(4)]
    made = asyncio.run(Demonstrated(expert, 2)(Group(0, TASK, []), starts, play))
    assert [rollout.id for rollout in made] == ["0", "1", "2", "3"]
    assert sorted(played, key=lambda each: each[0]) == [("0", None), ("1", None), ("2", expert), ("3", expert)]
    with pytest.raises(ConfigurationError, match="4 of 4 rollouts are the expert's"):
        asyncio.run(Demonstrated(expert, 4)(Group(0, TASK, []), starts, play))


def test_in_a_run_the_expert_is_right_and_known_as_such(tmp_path: Path) -> None:
    sizes = {"groups_per_step": 2, "group_size": 3, "max_tokens": 40, "heldout_tasks": 1, "steps": 1}
    run = build(recipe_named("rl_plus"), {"model": str(save_pocket_like(tmp_path / "model")), **sizes})
    launch(run, tmp_path, "run")
    ledger = Ledger(RunFolder(tmp_path / "run").ledger, read_only=True)
    for group in ledger.trained_groups(1):
        *own, expert = group.rollouts
        assert [rollout.origin for rollout in own] == [Origin.POLICY] * 2
        assert expert.origin is Origin.TEACHER and expert.reward == 1.0
        assert all(int(turn.versions.max()) == -1 for turn in expert.turns)
    ledger.close()
