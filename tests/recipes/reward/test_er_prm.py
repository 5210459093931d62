"""ER-PRM's labels: the card's numbers, and which beginnings are finished how often and judged by what."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from strop.environments.judging.verdict_questions import about
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.reward.er_prm import PrefixSuccess, entropic_mean
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.types import SUCCESS, Group, Origin, Outcome, Rollout
from tests.generate.talking import TASK, Recording, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions


def test_the_mean_of_the_card() -> None:
    assert entropic_mean([0.0, 1.0], 1.0) == pytest.approx(0.620115, abs=1e-6)
    for eta in (-3.0, 0.5, 1.0, 100.0):
        assert entropic_mean([0.0] * 3, eta) == 0.0 and entropic_mean([1.0] * 3, eta) == pytest.approx(1.0)
    values, before = [0.0, 0.25, 1.0, 1.0], 0.0
    for eta in (-9.0, -1.0, 0.0, 1e-3, 1.0, 9.0, 1000.0):
        found = entropic_mean(values, eta)
        assert before < found < 1.0, "it grows with eta, from the worst to the best"
        before = found
        if eta:
            assert found == pytest.approx(
                math.log(sum(math.exp(eta * v - eta) for v in values) / 4) / eta + 1, abs=1e-9
            )
    assert entropic_mean(values, 0.0) == 0.5625 and entropic_mean(values, 1e-6) == pytest.approx(0.5625, abs=1e-5)
    assert math.isnan(entropic_mean([], 1.0))


def test_each_step_is_labelled_by_how_it_can_be_finished(tmp_path: Path) -> None:
    """A solution of two steps and an answer: two beginnings, finished twice each, and the whole."""
    scores = {" 2+1=3 3": 1.0, " 3": 0.0, " 4": 1.0, " 5": math.nan}
    completions = ["1+1=2 2+1=3 3|", " 2+1=3 3|", " 3|", " 4|", " 5|"]

    async def score(group: Group) -> None:
        for rollout in group.rollouts:
            rollout.reward = next((score for end, score in scores.items() if rollout.completion.endswith(end)), 0.0)
            rollout.facts[SUCCESS] = rollout.reward
            if math.isnan(rollout.reward):
                rollout.outcome = Outcome.FAILED

    policy = policy_of(save_folder(tmp_path), Recording(completions))
    play = GroupPlayer(Group(0, TASK, []), policy, (Completions(1),), Chat(), 0, score)
    strategy = PrefixSuccess(samples=2, eta=0.0)
    with pytest.raises(ConfigurationError, match="samples >= 1"):
        PrefixSuccess(samples=0)
    strategy._ids = policy.template.encode("+-")
    verdicts = asyncio.run(strategy(play.group, [play.another()], play))
    # " 2+1=3 3" and " 3" end in " 3", the first rule that fits decides: 1 for the first, 0 for the second
    assert [rollout.turn_rewards for rollout in verdicts] == [(0.5,), (1.0,), (1.0,)]
    read = [policy.template.decode(rollout.turns[0].prompt) for rollout in verdicts]
    whole = "1+1=2 2+1=3 3"
    for text, begun in zip(read, ("1+1=2", "1+1=2 2+1=3", whole), strict=True):
        assert text == policy.template.decode(policy.template.opening(about(TASK.messages, begun)))
    assert [rollout.completion for rollout in verdicts] == ["+", "+", "+"] and {a.parent for a in verdicts} == {"0/0"}
    assert all(rollout.num_tokens == 1 and rollout.origin is Origin.TEACHER for rollout in verdicts)
    left = play.unused(verdicts)
    assert len(left) == 5, "the solution and its completions are given up"


def test_a_solution_that_leaves_no_room_for_a_verdict_stops_nothing(tmp_path: Path) -> None:
    """The whole does not fit before the question, its beginnings do."""

    async def score(group: Group) -> None:
        for rollout in group.rollouts:
            rollout.reward = 1.0
            rollout.facts[SUCCESS] = rollout.reward

    long = "1+1=2 " + "9" * 60
    folder = save_folder(tmp_path)
    room = len(policy_of(folder, None).template.opening(about(TASK.messages, long)))
    for context, count in ((room, 1), (room + 1, 2)):
        policy = policy_of(folder, Recording([f"{long}|", " 2|"]), max_tokens=128, context=context)
        play = GroupPlayer(Group(0, TASK, []), policy, (Completions(1),), Chat(), 0, score)
        strategy = PrefixSuccess(samples=1)
        strategy.meet(policy)
        assert len(asyncio.run(strategy(play.group, [play.another()], play))) == count


def test_a_run_makes_a_process_reward_model(tmp_path: Path) -> None:
    sizes = {"groups_per_step": 2, "group_size": 1, "max_tokens": 40, "heldout_tasks": 1, "steps": 1, "samples": 2}
    launch(build(recipe_named("er_prm"), {**sizes, "env": "arithmetic:2"}), tmp_path, "run")
    ledger = Ledger(RunFolder(tmp_path / "run").ledger, read_only=True)
    labels = []
    for group in ledger.trained_groups(1):
        assert len(group.scored) == 3, "two steps and the whole"
        for rollout in group.scored:
            labels.append(rollout.reward)
            assert rollout.turns[0].tokens.tolist() == [_word(rollout)] and 0 <= rollout.reward <= 1
    ledger.close()
    (row,) = [row for row in read_rows(RunFolder(tmp_path / "run").metrics) if row["step"] == 1]
    assert row["label"] == pytest.approx(sum(labels) / len(labels))


def _word(rollout: Rollout) -> int:
    good, bad = rollout.turns[0].aux["verdicts"][0].tolist()
    return int(good if rollout.reward >= 0.5 else bad)
