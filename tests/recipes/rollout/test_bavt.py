"""BAVT by hand: who is gone on from, what a judge reads, what is pruned, and that no budget is exceeded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.filter.judges.step_gain import GAIN, question, steps_in
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.rollout.bavt import BudgetedTree, probabilities
from strop.roles import LLMClient
from strop.standins.judges.progress import narrowing
from strop.types import Group, Message, Origin, Outcome, Rollout, Sampling
from tests.generate.talking import TASK, Recording, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions


def test_the_papers_probabilities() -> None:
    assert probabilities([0.8, 0.4], 1.0) == pytest.approx([2 / 3, 1 / 3]) and probabilities(
        [0.8, 0.4], 0.5
    ) == pytest.approx([0.8, 0.2])
    assert probabilities([0.8, 0.4], 0.1) == pytest.approx([0.999, 0.001], abs=1e-3)
    assert probabilities([0.8, 0.4, 0.0], 1e-5) == pytest.approx([1, 0, 0]), "no overflow near the end"
    assert probabilities([0.0, 0.0], 0.5) == pytest.approx([0.5, 0.5])


def test_what_is_left_is_the_smaller_share_of_both_budgets() -> None:
    tree = BudgetedTree(Judging([]), calls=10, tokens=200)
    assert [tree.left(*spent) for spent in ((0, 0), (8, 20), (3, 120), (0, 300))] == pytest.approx(
        [1.0, 0.2, 0.4, -0.5]
    )


def test_questions_and_answers() -> None:
    text = question("guess 1..8 in 3", ["4 -> higher"], "6 ->\nlast step: x".replace("\n", " "))
    assert steps_in(text) == (["4 -> higher"], "6 -> last step: x")
    assert [GAIN.read(each) for each in ("50", "it did -25.5", "900", "-900", "no")] == [50, -25.5, 100, -100, None]
    # 5..8 is left after 4, then 5 alone after 6
    assert narrowing(question("guess 1..8 in 3", ["4 -> higher"], "6 -> lower")) == "75.0"
    assert narrowing(question("guess 1..8 in 3", ["4 -> higher"], "3 -> higher")) == "0.0"


@dataclass
class Judging(LLMClient):
    """Says its answers one after the other, the last of them for ever; notes what it read."""

    answers: Sequence[str]
    asked: list[str] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        assert sampling.temperature == 0.0, "the same dialogue is judged alike"
        self.asked.append(messages[-1].content)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


def searched(
    folder: Path, completions: list[str], judge: Judging, turns: int, calls: int, tokens: int = 99
) -> tuple[Rollout, GroupPlayer]:
    async def score(group: Group) -> None:
        return None

    play = GroupPlayer(
        Group(0, TASK, []),
        policy_of(save_folder(folder), Recording(completions)),
        (Completions(turns),),
        Chat(),
        0,
        score,
    )
    (best,) = asyncio.run(BudgetedTree(judge, calls, tokens)(play.group, [play.another()], play))
    return best, play


def test_turns_that_help_are_gone_on_from_and_the_judge_hears_the_env(tmp_path: Path) -> None:
    judge = Judging(["50"])
    best, play = searched(tmp_path, ["a|", "b|", "c|", "d|", "e|", "f|"], judge, turns=2, calls=6)
    deeper = [rollout for rollout in play.made.values() if len(rollout.turns) == 2]
    assert best.id in {rollout.id for rollout in deeper}
    assert all(t.outcome is Outcome.FINISHED and t.origin is Origin.BRANCHED and t.num_tokens == 2 for t in deeper)
    assert all(t.turns[0].message == play.made[t.parent].turns[0].message for t in deeper), "its parent's, given to it"
    assert "last step: a -> more" in judge.asked[0] and any("step: a -> more" in text for text in judge.asked[1:])
    assert best.facts == {"turns_spent": 6.0, "value": 1.0} and len(play.made) == 6


def test_what_did_not_help_is_pruned(tmp_path: Path) -> None:
    """The first turn does harm: nobody goes on from it, whatever probability says."""
    best, play = searched(tmp_path, ["a|", *["b|"] * 9], Judging(["-10", "3"]), turns=9, calls=10)
    parents = [rollout.parent for rollout in play.made.values()]
    assert "0/0" not in parents and any(parents)
    assert best.facts["value"] == pytest.approx(0.5 + 0.03 * len(best.turns)) and best.outcome is Outcome.TRUNCATED
    assert len(best.turns) == max(len(rollout.turns) for rollout in play.made.values())


def test_values_add_up_and_stay_within_one(tmp_path: Path) -> None:
    best, _ = searched(tmp_path, ["a|"], Judging(["30"]), turns=9, calls=1)
    assert best.facts == {"turns_spent": 1.0, "value": pytest.approx(0.8)}
    full, _ = searched(tmp_path, ["a|"], Judging(["90"]), turns=9, calls=1)
    assert full.facts["value"] == 1.0
    harmed, _ = searched(tmp_path, ["a|"], Judging(["-90"]), turns=9, calls=1)
    assert harmed.facts["value"] == 0.0
    mute, _ = searched(tmp_path, ["a|"], Judging(["?"]), turns=9, calls=1)
    assert mute.facts["value"] == 0.5


def test_a_full_value_is_gone_on_from(tmp_path: Path) -> None:
    """Half of what was possible each time: the value is 1 after one turn, and later ones help as much."""
    best, play = searched(tmp_path, ["a|"] * 12, Judging(["50"]), turns=4, calls=12)
    assert max(len(rollout.turns) for rollout in play.made.values()) == 4, "as deep as the environment goes"
    assert best.outcome is Outcome.FINISHED and best.facts["value"] == 1.0


def test_no_budget_is_exceeded_by_more_than_a_turn(tmp_path: Path) -> None:
    _, play = searched(tmp_path, ["aaaa|"] * 20, Judging(["1"]), turns=50, calls=20, tokens=12)
    assert len(play.made) == 3, "5 tokens each: after 15 nothing is left"
    _, other = searched(tmp_path, ["a|"] * 20, Judging(["1"]), turns=50, calls=4)
    assert len(other.made) == 4


def test_an_ended_dialogue_is_preferred_to_a_better_open_one(tmp_path: Path) -> None:
    best, _ = searched(tmp_path, ["a|", "b|", "c|"], Judging(["-40", "40"]), turns=1, calls=3)
    assert best.outcome is Outcome.FINISHED and best.facts["value"] == pytest.approx(0.9)


def test_what_the_env_failed_is_worth_nothing() -> None:
    with pytest.raises(ConfigurationError, match="got 0, 512"):
        BudgetedTree(Judging([""]), 0)
    with pytest.raises(ConfigurationError, match="got 10, 0"):
        BudgetedTree(Judging([""]), 10, 0)
