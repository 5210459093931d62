"""V-STAR's search: which node is chosen, what a branch is given, and what the head learns."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.rollout.v_star import GAIN, Node, ValueTree, chosen, visit
from strop.training.requirements import PolicyStatistic
from strop.types import Group, Origin, Rollout
from tests.building import make_group
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions


def node(depth: int, worth: float, visits: int = 1) -> Node:
    return Node(make_group([0.0]).rollouts[0], depth, depth, worth, visits)


def test_the_node_of_highest_worth_and_bonus_above_its_depths_mean() -> None:
    nodes = [node(4, 0.2), node(4, 0.6), node(8, 0.5, visits=3), node(8, 0.4)]
    assert chosen(nodes, 4, 0.0) is nodes[1]
    # 0.6 + sqrt(ln 5 / 2) = 1.50 against 0.5 + sqrt(ln 5 / 4) = 1.13
    assert chosen(nodes, 4, 1.0) is nodes[1]
    nodes[1].visits = 9  # 0.6 + sqrt(ln 5 / 10) = 1.001
    assert chosen(nodes, 4, 1.0) is nodes[2] and math.sqrt(math.log(5) / 4) + 0.5 > 1.001
    assert chosen([node(4, 0.1, 1), node(4, 0.9, 10**6)], 4, 5.0) is not None
    far = [node(4, 0.1, 1), node(4, 0.9, 10**6)]
    assert chosen(far, 4, 5.0) is far[1], "below the mean of its depth, whatever its bonus"
    assert chosen([], 4, 1.0) is None


def test_visits_are_counted_up_to_the_root() -> None:
    """A branch from depth 4 of the first rollout has a node at 6; what goes on from there passes 2 and 4 again."""
    first, second, other = make_group([0.0] * 3).rollouts
    two, four, six = Node(first, 2, 2, 0.0), Node(first, 4, 4, 0.0), Node(first, 6, 6, 0.0)
    branch, aside = Node(second, 2, 6, 0.0, above=four), Node(other, 2, 2, 0.0)
    nodes = [two, four, six, branch, aside]
    visit(nodes, branch)
    assert [node.visits for node in nodes] == [2, 2, 1, 2, 1]
    visit(nodes, two)
    assert [node.visits for node in nodes] == [3, 2, 1, 2, 1]


def played(
    folder: Path, completions: list[str], count: int, strategy: ValueTree, entropies: list[float]
) -> list[Rollout]:
    async def statistics(groups: list[Group], needs: frozenset[PolicyStatistic]) -> None:
        for rollout in groups[0].scored:
            size = rollout.num_tokens
            rollout.policy_statistics["entropy"] = np.array((entropies + [0.0] * size)[:size], np.float32)
            rollout.policy_statistics["hidden"] = np.stack([np.full(2, place, np.float32) for place in range(size)])

    async def score(group: Group) -> None:
        return None

    policy = policy_of(save_folder(folder), Recording(completions))
    play = GroupPlayer(Group(0, TASK, []), policy, (Completions(1),), Chat(), 0, score, statistics)
    return asyncio.run(strategy(play.group, [play.another() for _ in range(count)], play))


def test_branches_go_on_from_nodes_and_their_nodes_join_the_tree(tmp_path: Path) -> None:
    """Nodes at 2 and 4 of `abcde|`, of which that at 4 is the more undecided; the branch has others, at 6 and 8."""
    strategy = ValueTree(1, 2, entropy=1.0, explore=0.0)
    first, second, third = played(tmp_path, ["abcde|", "xyzw|", "u|"], 3, strategy, [0, 0, 0.3, 0, 0.9, 0])
    assert first.origin is Origin.POLICY and second.origin is Origin.BRANCHED and second.parent == first.id
    assert second.turns[0].prefix.tolist() == ids("abcd") and second.turns[0].message.content == "abcdxyzw"
    assert second.facts[GAIN] == pytest.approx(0.0), "alone at its depth"
    # nodes of the second: depth 6, where its third token with 0.3 begins; 0.9 at depth 4 is still the highest
    assert third.turns[0].prefix.tolist() == ids("abcd") and third.parent == first.id


def test_a_branch_of_a_branch_is_a_visit_to_the_nodes_before_it(tmp_path: Path) -> None:
    """`abcde|` has nodes at 2 and 4, worth 0.3 and 0.4; `xyzw|`, given `abcd`, has as much at 6 and 8.

    The third goes on from 8, which is a visit to 2, 4 and 6 as well: then 4 has 0.4 + sqrt(ln 4 / 4) = 0.99 and 8 has
    0.4 + sqrt(ln 4 / 3) = 1.08. With that visit left out both had the same, and the first of them came next.
    """
    strategy = ValueTree(1, 2, entropy=1.0, explore=1.0)
    completions = ["abcde|", "xyzw|", "u|", "v|"]
    first, second, third, fourth = played(tmp_path, completions, 4, strategy, [0, 0, 0.3, 0, 0.4, 0])
    assert second.parent == first.id and third.parent == second.id
    assert third.turns[0].num_prefix == 8
    assert fourth.parent == second.id and fourth.turns[0].num_prefix == 8


def test_without_nodes_a_start_is_played_plainly(tmp_path: Path) -> None:
    found = played(tmp_path, ["a|", "b|", "c|"], 3, ValueTree(1, 8), [0.5])
    assert [rollout.origin for rollout in found] == [Origin.POLICY] * 3


def scored(strategy: ValueTree, states: dict[str, list[float]], rewards: list[float], number: int) -> Group:
    group = make_group(rewards, number=number)
    strategy._states = {name: np.array([[each] for each in column]) for name, column in states.items()}
    return group


def test_the_head_learns_one_temporal_difference_at_a_time_and_serves_later_versions() -> None:
    strategy = ValueTree()
    strategy.observe(scored(strategy, {"0-0": [1.0, 2.0], "0-1": [0.0]}, [1.0, 0.0], 0))
    ((states, targets),) = strategy._batches
    assert states.tolist() == [[1.0], [2.0], [0.0]] and targets.tolist() == [0.0, 1.0, 0.0], "no value is known yet"
    strategy._catch_up(0)
    assert strategy._fit is not None
    before = strategy._value(np.array([2.0]))
    assert before > strategy._value(np.array([0.0]))
    strategy.observe(scored(strategy, {"1-0": [5.0, 2.0]}, [0.0], 1))
    assert strategy._batches[1][1].tolist() == pytest.approx([0.99 * before, 0.0])
    again = strategy._fit
    strategy._catch_up(0)
    assert strategy._fit is again, "the same version sees the same values"


def test_failed_rollouts_teach_nothing_and_memory_comes_back(tmp_path: Path) -> None:
    strategy = ValueTree()
    group = scored(strategy, {"0-0": [1.0], "0-1": [0.0]}, [1.0, 0.0], 0)
    group.rollouts[0].outcome = make_group([0.0], failed=[0]).rollouts[0].outcome
    strategy.observe(group)
    assert strategy._batches[0][0].tolist() == [[0.0]] and strategy._states == {}
    strategy.save(tmp_path)
    again = ValueTree()
    again.resume(tmp_path)
    again._catch_up(3)
    strategy._catch_up(3)
    assert again._value(np.array([0.7])) == strategy._value(np.array([0.7]))


def test_refuses_nonsense() -> None:
    for wrong in ({"beam": 0}, {"stride": 0}, {"entropy": -1.0}, {"explore": -1.0}):
        with pytest.raises(ConfigurationError, match="ValueTree needs"):
            ValueTree(**wrong)  # type: ignore[arg-type]
