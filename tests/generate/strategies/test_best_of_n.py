"""The best of several rollouts is brought; with an evaluation that is pass@k."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.strategies.best_of_n import BestOf
from strop.types import SUCCESS, Group, Outcome, Rollout
from tests.generate.talking import TASK, Recording, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions


def played(folder: Path, completions: list[str], count: int, is_broken: bool = False) -> list[Rollout]:
    async def score(group: Group) -> None:
        for rollout in group.rollouts:
            rollout.reward = float(rollout.completion or 0)
            rollout.facts[SUCCESS] = rollout.reward

    policy = policy_of(save_folder(folder), Recording([f"{completion}|" for completion in completions]))
    play = GroupPlayer(Group(0, TASK, []), policy, (Completions(1, is_broken=is_broken),), Chat(), 0, score)
    brought = asyncio.run(BestOf(count)(play.group, [play.another() for _ in range(2)], play))
    assert len(play.made) == len(play.keys) == 2 * count
    return brought


def test_one_of_each_start_the_first_of_equals(tmp_path: Path) -> None:
    first, second = played(tmp_path, ["0", "0", "1", "0", "1", "0"], 3)  # of 0/0, 0/2 and 0/3, then of 0/1, 0/4 and 0/5
    assert {first.completion, second.completion} == {"1"} and [first.id, second.id] == ["0/3", "0/4"]
    same = played(tmp_path, ["1"] * 6, 3)
    assert [each.id for each in same] == ["0/0", "0/1"]


def test_failures_only_where_all_failed(tmp_path: Path) -> None:
    found = played(tmp_path, ["1"] * 4, 2, is_broken=True)
    assert [each.outcome for each in found] == [Outcome.FAILED] * 2
    with pytest.raises(ConfigurationError, match="got 0"):
        BestOf(0)
