"""Forks where the policy is least certain: positions by hand, in chats and in environments of several turns, and in a
run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from strop.control.budgets.fixed import Fixed
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.engines.scripted import Scripted
from strop.generate.group_rollouts import GroupPlayer
from strop.pipeline import train
from strop.recipes.rollout.ettrl import EntropyForks
from strop.roles import Environment, Episode
from strop.training.requirements import ENTROPY, PolicyStatistic
from strop.types import Group, Message, Observation, Origin, Outcome, Rollout, Task
from tests.clock import run_virtually
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like


@dataclass
class Completions(Environment, Episode):
    """Asks `more` until it heard so many completions."""

    count: int
    heard: int = 0
    is_broken: bool = False
    name: ClassVar[str] = "test"
    level: ClassVar[int] = 0

    def task(self, index: int, heldout: bool = False) -> Task:
        return TASK

    def episode(self) -> Episode:
        return replace(self)

    def check(self, task: Task, completion: str) -> float:
        return 0.0

    async def reset(self, task: Task) -> None:
        self.heard = 0

    async def step(self, completion: Message) -> Observation:
        self.heard += 1
        if self.is_broken:
            raise ConnectionError("gone")
        return Observation((Message("user", "more"),), done=self.heard == self.count, reward=0.0)


def player(
    folder: Path,
    completions: Sequence[str],
    entropies_of: dict[str, list[float]],
    env: Environment,
    asked: PolicyStatistic = ENTROPY,
) -> GroupPlayer:
    """`entropies_of` are the entropies of each rollout's tokens, as far as they go; 0 behind."""

    async def statistics(groups: list[Group], needs: frozenset[PolicyStatistic]) -> None:
        assert needs == {asked}
        for rollout in groups[0].scored:
            known = np.zeros(rollout.num_tokens, np.float32)
            known[: len(entropies_of[rollout.id])] = entropies_of[rollout.id]
            rollout.policy_statistics[asked.name] = known

    async def score(group: Group) -> None:
        return None

    policy = policy_of(save_folder(folder), Recording(completions))
    return GroupPlayer(Group(0, TASK, []), policy, (env,), Chat(), 0, score, statistics)


def made(play: GroupPlayer, roots: int, strategy: EntropyForks) -> list[Rollout]:
    starts = [play.another() for _ in range(roots)]
    return asyncio.run(strategy(play.group, starts, play))


def test_branches_begin_at_the_most_uncertain_tokens(tmp_path: Path) -> None:
    """A root of three completions, `ab|`, `c|` and `d|`, with branches at its second and fourth token."""
    completions = ["ab|", "c|", "d|", *["x|", "y|", "z|"], *["u|", "v|"]]
    entropies_of = {"0/0": [0.1, 0.9, 0.0, 0.7, 0.0, 0.5, 0.0]}
    root, early, late = made(player(tmp_path, completions, entropies_of, Completions(3)), 1, EntropyForks(2, 1))
    assert root.origin is Origin.POLICY and root.parent == "" and root.num_tokens == 7
    assert [each.origin for each in (early, late)] == [Origin.BRANCHED] * 2
    assert [each.parent for each in (early, late)] == ["0/0"] * 2 and [early.id, late.id] == ["0/1", "0/2"]
    assert [turn.message.content for turn in early.turns] == ["ax", "y", "z"], "one token kept, the second drawn anew"
    assert [turn.tokens.tolist() for turn in early.turns] == [ids("x|"), ids("y|"), ids("z|")]
    assert [turn.message.content for turn in late.turns] == ["ab", "u", "v"], (
        "from the first token of a later completion"
    )
    assert [turn.tokens.tolist() for turn in late.turns] == [[], ids("u|"), ids("v|")]
    assert early.facts == {"shared": pytest.approx(1 / 7)} and late.facts == {"shared": pytest.approx(3 / 7)}


def test_of_equals_the_first_and_never_more_than_there_are(tmp_path: Path) -> None:
    play = player(tmp_path, ["ab|", *["x|"] * 6], {"0/0": [0.5, 0.5, 0.5]}, Completions(1))
    found = made(play, 1, EntropyForks(2, 3))
    assert [len(each.turns[0].prefix) for each in found[1:]] == [0, 0, 0, 1, 1, 1]
    assert len({play.keys[index] for index in range(7)}) == 7, "branches from one place have random keys of their own"
    many = np.where(np.arange(200) % 2, 0.5, 0.2).astype(np.float32)
    assert EntropyForks(3, 1)._places(many) == [1, 3, 5], "of many as of few"
    short = player(tmp_path, ["|", *["x|"] * 5], {"0/0": [0.5]}, Completions(1))
    assert len(made(short, 1, EntropyForks(4, 2))) == 1 + 2, "one token is one place"


def test_what_the_env_failed_has_no_branches(tmp_path: Path) -> None:
    found = made(player(tmp_path, ["ab|"] * 9, {}, Completions(1, is_broken=True)), 2, EntropyForks(2, 2))
    assert [each.outcome for each in found] == [Outcome.FAILED] * 2


def test_it_needs_somewhere_to_fork() -> None:
    with pytest.raises(ConfigurationError, match="got 0 and 2"):
        EntropyForks(0, 2)
    with pytest.raises(ConfigurationError, match="got 2 and 0"):
        EntropyForks(2, 0)
    assert EntropyForks(1, 1).positions == 1


def test_in_a_run_every_token_is_sampled_once_and_branches_start_at_the_highest_entropy(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    engine = Scripted(lambda prompt, key: "1" * (3 + key % 4) + str(key % 5))
    run = make_run(steps=2, strategy=EntropyForks(2, 2), budget=Fixed(3), engine=engine)
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        first = flow.ledger
        run_virtually(train(flow))
        assert first.violations() == []
        groups = [*first.trained_groups(1), *first.trained_groups(2)]
        recorded = recorder.rows[-1]
    run.trainer.open(model, 0)  # the weights that made the first step's groups
    for group in groups[:4]:
        roots = [each for each in group.rollouts if each.origin is Origin.POLICY]
        branches = [each for each in group.rollouts if each.origin is Origin.BRANCHED]
        assert len(roots) == 3 and len(branches) == 3 * 2 * 2
        run.trainer.policy_statistic([replace(group, rollouts=roots)], frozenset({ENTROPY}))
        for root in roots:
            own = [each for each in branches if each.parent == root.id]
            highest = np.argsort(-root.policy_statistics["entropy"], kind="stable")[:2]
            assert sorted(sum(turn.num_prefix for turn in each.turns) for each in own) == sorted([*highest, *highest])
            for each in own:
                begun = each.turns[0].prefix
                assert begun.tolist() == root.turns[0].tokens[: len(begun)].tolist()
    sampled = sum(each.num_sampled for group in groups for each in group.rollouts)
    assert recorded["tokens_generated"] == sampled, "what is shared is counted once"
    assert recorded["share/branched"] == pytest.approx(12 / 15) and 0 < recorded["fact/shared"] < 1
