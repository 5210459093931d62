"""RLTF's baseline: one greedy rollout, judged and not brought; what it was told stands on all the others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from strop.backends import Completion
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.strategies.independent import Independent
from strop.recipes.reward.rltf import GreedyBaseline
from strop.types import Group, IntArray, Outcome, Rollout, Sampling
from tests.generate.talking import TASK, Recording, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions


@dataclass
class ByTemperature(Recording):
    """Says 9 where the likeliest tokens are asked for, else 1."""

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.completions = [*self.completions, "9|" if sampling.temperature == 0 else "1|"]
        return await super().sample(prompt, sampling, key)


def played(folder: Path, is_broken: bool = False) -> tuple[list[Rollout], GroupPlayer]:
    async def score(group: Group) -> None:
        for rollout in group.scored:
            rollout.facts["feedback"] = float(rollout.completion)

    strategy, engine = GreedyBaseline(Independent()), ByTemperature([])
    strategy.meet(policy := policy_of(save_folder(folder), engine, max_tokens=7, temperature=0.5))
    group = Group(0, TASK, [])
    play = GroupPlayer(group, policy, (Completions(1, is_broken=is_broken),), Chat(), 0, score)
    made = asyncio.run(strategy(group, [play.another() for _ in range(3)], play))
    assert engine.limits == [7] * 4
    return made, play


def test_what_the_greedy_rollout_was_told_stands_on_all_others(tmp_path: Path) -> None:
    made, play = played(tmp_path)
    assert [rollout.completion for rollout in made] == ["1", "1", "1"]
    assert [rollout.facts for rollout in made] == [{"greedy": 9.0}] * 3
    (unused,) = play.unused(made)  # its tokens are counted, and nobody is trained on them
    assert (unused.completion, unused.outcome) == ("9", Outcome.PRUNED)


def test_a_greedy_rollout_that_the_env_failed_says_nothing(tmp_path: Path) -> None:
    assert [rollout.facts for rollout in played(tmp_path, is_broken=True)[0]] == [{}] * 3


def test_it_must_know_how_tokens_are_drawn() -> None:
    with pytest.raises(ConfigurationError, match=r"call meet\(policy\) first"):
        asyncio.run(GreedyBaseline(Independent())(Group(0, TASK, []), [], None))  # type: ignore[arg-type]
