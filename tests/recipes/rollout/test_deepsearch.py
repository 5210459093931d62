"""DeepSearch's tree: worth backed up by hand, both choices, one tree played through, and advantage from it."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.tree_search.nodes import TreeNode
from strop.recipes.rollout.deepsearch import Frontier, SearchValues, back_up
from strop.types import SUCCESS, Group, Outcome, Rollout
from tests.building import TASK, make_group, turn
from tests.generate.talking import ids
from tests.recipes.rollout.test_ettrl import Completions, player


def node(above: TreeNode | None, logprobs: list[float] | None = None, outcome: Outcome = Outcome.PRUNED) -> TreeNode:
    written = turn(len(logprobs or []))
    piece = Rollout("", TASK, (replace(written, logprobs=np.array(logprobs or [], np.float32)),), outcome)
    made = TreeNode(piece if above else None, above)
    if above:
        above.below.append(made)
    return made


def test_worth_goes_up_with_less_weight_and_right_beats_wrong() -> None:
    """Two nodes of two ends each: 1/3, 2/3 and 1 on the way of the first right end."""
    root = node(None)
    a, b = node(root), node(root)
    right, wrong, other, late = node(a), node(a), node(b), node(b)
    back_up(right, 1.0)
    assert [each.value for each in (root, a, right)] == pytest.approx([1 / 3, 2 / 3, 1.0])
    back_up(wrong, -1.0)
    assert [each.value for each in (root, a, wrong)] == pytest.approx([1 / 3, 2 / 3, -1.0]), "stays on a right path"
    back_up(other, -1.0)
    assert [each.value for each in (root, b, other)] == pytest.approx([1 / 3, -2 / 3, -1.0])
    back_up(late, 1.0)
    assert [each.value for each in (root, b, late)] == pytest.approx([2 / 3, 2 / 3, 1.0]), "replaced, and added above"
    assert [each.visits for each in (root, a, b, right, late)] == [4, 2, 2, 1, 1]
    last = root
    for _ in range(29):
        last = node(last)
    before = root.value
    back_up(last, 1.0)
    assert root.value - before == pytest.approx(0.1), "not 1 / 30"


def test_the_local_choice_by_hand() -> None:
    """q + 2 sqrt(ln N(parent) / N): 0 + 2 sqrt(ln 2) = 1.665 against 0.5 + 2 sqrt(ln 2 / 2) = 1.677."""
    root = node(None)
    fresh, known, ended = node(root), node(root), node(root, outcome=Outcome.FINISHED)
    root.visits, fresh.visits, known.visits, known.value, ended.value = 2, 1, 2, 1.0, 9.0
    search = Frontier()
    assert search.local_score(fresh) == pytest.approx(1.66511, abs=1e-4)
    assert search.local_score(known) == pytest.approx(1.67741, abs=1e-4)
    assert search._next_below(root) is known, "what ended is passed over"
    fresh.visits = 0
    assert search.local_score(fresh) == 0.0
    root.visits = 0
    assert search.local_score(known) == 0.5


def test_the_global_choice_by_hand() -> None:
    """0.4 tanh q(parent) + 0.4 * surprise + 0.01 sqrt(depth / 4), over leaves that are open; the root is none."""
    root = node(None)
    a, b = node(root, [-0.5]), node(root, [-0.25, -0.75])
    deep = node(a, [-0.1])
    a.value, a.visits = 1.0, 2
    search = Frontier(deepest=4)
    assert search.global_score(b) == pytest.approx(0.4 * 0.5 + 0.01 * 0.5)
    assert search.global_score(deep) == pytest.approx(0.4 * math.tanh(0.5) + 0.4 * 0.1 + 0.01 * math.sqrt(0.5))
    assert search._next_anywhere(root) is deep
    assert Frontier(deepest=4, uncertainty=2.0)._next_anywhere(root) is b
    assert search._next_anywhere(node(None)) is None


def searched(play: GroupPlayer, strategy: Frontier, starts: int) -> list[Rollout]:
    async def score(group: Group) -> None:
        for rollout in group.rollouts:
            rollout.reward = float("x" in rollout.completion)
            rollout.facts[SUCCESS] = rollout.reward

    play.scorer = score
    return asyncio.run(strategy(play.group, [play.another() for _ in range(starts)], play))


def test_a_tree_played_through(tmp_path: Path) -> None:
    """`ab` and `cd`; below `ab` the right end `x|` and `ef`; below that, the deepest, `y|` and `zz|`, both wrong."""
    play = player(tmp_path, ["ab-", "cd-", "x|", "ef-", "y|", "zz|"], {}, Completions(1))
    first, second = searched(play, Frontier(2, 2, 3), 2)
    assert first.turns[0].tokens.tolist() == ids("abx|") and (first.parent, first.turns[0].num_prefix) == ("", 0)
    assert second.turns[0].tokens.tolist() == ids("efy|") and second.turns[0].message.content == "abefy"
    assert second.parent == first.id and second.turns[0].prefix.tolist() == ids("ab")
    assert first.facts == {"expansions": 3.0, "depth": 2.0} and second.facts == {"expansions": 3.0, "depth": 3.0}
    worth = [each.turns[0].aux["value"][len(each.turns[0].prompt) :].tolist() for each in (first, second)]
    assert worth[0] == pytest.approx([math.tanh(2 / 3)] * 2 + [1.0] * 2), "as it stands when the tree is done"
    assert worth[1] == pytest.approx([math.tanh(-0.75)] * 2 + [-1.0] * 2)
    left = play.unused([first, second])
    assert sorted((each.turns[0].message.content, each.parent) for each in left) == [("abefzz", second.id), ("cd", "")]
    assert sum(each.num_sampled for each in (first, second, *left)) == 2 + 2 + 2 + 2 + 2 + 3
    SearchValues()([Group(0, TASK, [first, second])])
    assert first.advantages is not None and second.advantages is not None
    assert first.advantages.tolist() == pytest.approx([2 * math.tanh(2 / 3)] * 2 + [1.0] * 2), "twice what both have"
    assert second.advantages.tolist() == pytest.approx([math.tanh(-0.75)] * 2 + [-1.0] * 2)


def test_right_before_wrong_before_cut_off_and_the_surest_of_them(tmp_path: Path) -> None:
    play = player(tmp_path, ["abc", "d|", "x|", "xx|"], {}, Completions(1))
    play.policy = replace(play.policy, sampling=replace(play.policy.sampling, max_tokens=3))
    (found,) = searched(play, Frontier(4, 9, 1), 1)
    assert found.completion == "x" and found.facts["depth"] == 1.0
    play = player(tmp_path, ["abc", "d|"], {}, Completions(1))
    play.policy = replace(play.policy, sampling=replace(play.policy.sampling, max_tokens=3))
    (wrong,) = searched(play, Frontier(2, 9, 1), 1)
    assert wrong.completion == "d", "one that was cut off comes last"


def test_the_surest_end_is_recorded() -> None:
    root = node(None)
    ends = [node(root, logprobs, Outcome.FINISHED) for logprobs in ([-0.5, -0.5], [-0.1, -0.2], [-0.3])]

    class Asked:
        async def score(self, rollouts: list[Rollout]) -> list[Rollout | None]:
            return [*make_group([1.0, 1.0, 1.0]).rollouts]

    assert asyncio.run(Frontier()._recorded(ends, Asked())) is ends[1]  # type: ignore[arg-type]
    assert ends[1].value == 1.0 and root.visits == 1 and ends[0].visits == 0


def test_a_reward_that_failed_says_nothing() -> None:
    root = node(None)
    lost, wrong = (node(root, logprobs, Outcome.FINISHED) for logprobs in ([-0.1], [-0.5]))

    class Asked:
        async def score(self, rollouts: list[Rollout]) -> list[Rollout | None]:
            return [None, *make_group([0.0]).rollouts][: len(rollouts)]

    assert asyncio.run(Frontier()._recorded([lost, wrong], Asked())) is wrong  # type: ignore[arg-type]
    assert asyncio.run(Frontier()._recorded([lost], Asked())) is lost  # type: ignore[arg-type]
    assert (lost.visits, lost.value, wrong.value, root.visits) == (0, 0.0, -1.0, 1)


def test_a_search_ends_where_nothing_is_open(tmp_path: Path) -> None:
    found = searched(player(tmp_path, ["a|", "b|"], {}, Completions(1)), Frontier(2, 4, 2), 5)
    assert len(found) == 1, "of several that end together one is recorded"
    broken = searched(player(tmp_path, ["a|"] * 2, {}, Completions(1, is_broken=True)), Frontier(2, 4, 2), 1)
    assert [each.outcome for each in broken] == [Outcome.FAILED] * 2


def test_the_advantage_is_the_value_minus_the_mean_of_the_ends_and_alone_the_value() -> None:
    group = make_group([1.0, 0.0, 0.0], lengths=[2, 1, 1], pruned=[2])
    for rollout, worth in zip(group.rollouts, ([0.25, 1.0], [-0.5], [3.0]), strict=True):
        rows = np.array([0.0, *worth], np.float32)
        rollout.turns = (replace(rollout.turns[0], aux={"value": rows}),)
    SearchValues()([group])
    found = [None if each.advantages is None else each.advantages.tolist() for each in group.rollouts]
    assert found == [pytest.approx([0.0, 0.75]), pytest.approx([-0.75]), None]
    alone = Group(0, TASK, group.rollouts[:1])
    SearchValues()([alone])
    assert alone.rollouts[0].advantages is not None
    assert alone.rollouts[0].advantages.tolist() == pytest.approx([0.25, 1.0])
    with pytest.raises(ConfigurationError, match="has no node values"):
        SearchValues()([make_group([1.0, 0.0])])


def test_refuses_nonsense() -> None:
    for wrong in ({"width": 0}, {"tokens": 0}, {"deepest": 0}, {"explore": -1.0}, {"uncertainty": -1.0}):
        with pytest.raises(ConfigurationError, match="Frontier needs"):
            Frontier(**wrong)  # type: ignore[arg-type]
