"""ECHO's tree: metrics and thresholds by hand, a path that branches, one that is given up, and the budget."""

from __future__ import annotations

import asyncio
from pathlib import Path as Folder

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.tree_search.parallel_decode import LivePath
from strop.recipes.rollout.echo_ec.strategy import ConfidentTree, Thresholds, _lasting, _means, _Watched
from strop.training.requirements import PolicyStatistic
from strop.types import Group, Origin, Rollout, Start
from tests.generate.talking import ids
from tests.recipes.rollout.test_ettrl import Completions, player

SURE = [0.991, *[0.001] * 9]
TORN = [0.1] * 10  # H = ln 10, C = 0.1


def looked(folder: Folder, completions: list[str], torn: dict[tuple[str, int], str], env: Completions) -> GroupPlayer:
    """Sure everywhere but at the sampled tokens (rollout, place) named, where these letters are equally likely."""

    async def statistics(groups: list[Group], needs: frozenset[PolicyStatistic]) -> None:
        for rollout in groups[0].scored:
            tokens = [int(token) for turn in rollout.turns for token in turn.tokens]
            rows = [[*SURE, token, *range(90, 99)] for token in tokens]
            for (name, place), letters in torn.items():
                if name == rollout.id and place < len(rows):
                    rows[place] = [*TORN, *ids(letters)]
            rollout.policy_statistics["top 10"] = np.array(rows, np.float32)

    play = player(folder, completions, {}, env)
    play.policy_statistic = statistics
    return play


def grown(play: GroupPlayer, strategy: ConfidentTree, starts: int) -> list[Rollout]:
    strategy.meet(play.policy)
    return asyncio.run(strategy(play.group, [play.another() for _ in range(starts)], play))


def test_a_path_branches_once_into_the_likeliest_other_tokens(tmp_path: Folder) -> None:
    """Torn at its sixth token, `f`, and then at the eighth: the fan is 1 + 2 + 0.12, itself and two others."""
    torn = {("0/0", 5): "fxyzuvwqrs", ("0/0", 7): "hxyzuvwqrs"}
    completions = ["abcd", "efgh", "i|", "1|", "2|", "3|"]
    found = grown(looked(tmp_path, completions, torn, Completions(1)), ConfidentTree(1, 1.0, 0.5, 4), 4)
    assert [each.completion for each in found] == ["abcdefghi", "abcdex1", "abcdey2", "3"]
    assert [each.origin for each in found] == [Origin.POLICY, Origin.BRANCHED, Origin.BRANCHED, Origin.POLICY]
    assert found[1].turns[0].prefix.tolist() == ids("abcde") and found[1].turns[0].versions[0] == -1
    assert found[0].facts == {"given_up": 0.0, "fan": 3.0} and found[1].facts == {"given_up": 0.0}
    assert found[3].facts == {}, "what was left of the budget is played plainly"


def test_no_more_branches_than_the_budget_has(tmp_path: Folder) -> None:
    torn = {("0/0", 5): "fxyzuvwqrs"}
    found = grown(
        looked(tmp_path, ["abcd", "efgh", "i|", "1|"], torn, Completions(1)), ConfidentTree(1, 1.0, 0.5, 4), 2
    )
    assert [each.completion for each in found] == ["abcdefghi", "abcdex1"]


def test_not_before_the_fifth_token_and_not_where_confidence_is_usual(tmp_path: Folder) -> None:
    early = grown(
        looked(tmp_path, ["abcd", "e|", "1|"], {("0/0", 3): "dxyzuvwqrs"}, Completions(1)),
        ConfidentTree(1, 1.0, 0.5, 4),
        2,
    )
    assert [each.completion for each in early] == ["abcde", "1"]


def test_a_path_uncertain_three_times_in_a_row_is_pruned(tmp_path: Folder) -> None:
    """Torn at its fifth to seventh token, where the rises are 2.24, 1.68 and 1.12: all above 0.5 / 3.5 ln 10 = 0.33."""
    torn = {("0/1", place): "exyzuvwqrs" for place in (4, 5, 6)}
    play = looked(tmp_path, ["abcd", "abcd", "efgh", "efgh", "i|"], torn, Completions(1))
    (found,) = grown(play, ConfidentTree(2, 1.0, 0.0, 4), 2)
    assert found.id == "0/0" and found.facts["given_up"] == 1.0
    (lost,) = play.unused([found])
    assert lost.turns[0].message.content == "abcdefgh" and lost.num_sampled == 8
    alone = looked(
        tmp_path, ["abcd", "efgh", "i|"], {("0/0", place): "exyzuvwqrs" for place in (4, 5, 6)}, Completions(1)
    )
    (kept,) = grown(alone, ConfidentTree(1, 1.0, 0.0, 4), 1)
    assert kept.completion == "abcdefghi", "one is always left"


def test_in_an_environment_of_several_turns(tmp_path: Folder) -> None:
    torn = {("0/0", 5): "dxyzuvwqrs"}
    found = grown(looked(tmp_path, ["abc|", "cd", "e|", "1|"], torn, Completions(2)), ConfidentTree(1, 1.0, 0.5, 6), 2)
    assert [[turn.message.content for turn in each.turns] for each in found] == [["abc", "cde"], ["abc", "cx1"]]
    broken = grown(looked(tmp_path, ["a|"], {}, Completions(1, is_broken=True)), ConfidentTree(1, piece=4), 1)
    assert len(broken) == 1


def watched(entropy: list[float], confidence: list[float], born: int = 0) -> _Watched:
    path = LivePath(Start("0/0", 0), born=born)
    return _Watched(path, np.array(entropy, dtype=float), np.array(confidence, dtype=float))


def test_means_and_rises_by_hand() -> None:
    assert _means(np.array([4.0, 2.0, 3.0, 7.0, 8.0]), 4).tolist() == [4.0, 3.0, 3.0, 4.0, 5.0]
    each = watched([1.0, 2.0, 3.0, 2.0, 5.0, 1.0], [0.2] * 6)
    assert each.rises.tolist() == [0.0, 0.0, 0.0, 0.0, 5.0 - 2.0, 1.0 - 3.0]
    assert _lasting(np.array([True, True, True, False, True, True, True, True])).tolist() == [
        False, False, True, False, False, False, True, True,
    ]  # fmt: skip
    assert _means(np.zeros(0), 4).tolist() == [] and watched([], []).rises.tolist() == []


def test_thresholds_are_quantiles_over_each_token_once() -> None:
    root, child = watched([1.0, 2.0, 3.0], [0.1, 0.1, 0.1]), watched([1.0, 2.0, 9.0], [0.1, 0.1, 0.2], born=2)
    known = ConfidentTree(1, 1.0, 0.0).thresholds([root, child])
    assert known == Thresholds(9.0, pytest.approx(0.1))
    assert ConfidentTree(1, 0.5, 0.5).thresholds([root, child]).entropy == 2.5, "of 1, 2, 3 and 9"
    assert ConfidentTree().thresholds([]) == Thresholds(np.inf, 0.0)


def test_where_a_path_branches_and_how_widely() -> None:
    known = Thresholds(3.5, 1.2)
    assert known.branches(3.5, 1.2, 0.2) and not known.branches(3.49, 1.2, 0.2)
    assert not known.branches(3.5, 1.21, 0.2) and not known.branches(3.5, 1.2, 0.19)
    assert known.fan(3.5, 1.2) == 3 and known.fan(1.0, 1.2) == 1 and known.fan(3.5, 0.6) == 4  # 1 + 2 + 0.5, rounded
    assert known.fan(9.0, 1.2) == 4 and known.fan(3.5, 2.4) == 2 and known.fan(1.0, 9.0) == 1
    fans = [known.fan(entropy, 1.2) for entropy in np.linspace(0, 8, 30)]
    assert fans == sorted(fans) and [known.fan(3.5, c) for c in np.linspace(0, 4, 30)] == sorted(
        (known.fan(3.5, c) for c in np.linspace(0, 4, 30)), reverse=True
    )


def test_when_a_path_is_given_up() -> None:
    """With the release's own numbers: group confidence below 0.4, tail confidence sinking below 1, H rising by 0.5."""
    known = Thresholds(3.5, 1.2)
    calm = [1.0] * 8
    assert not known.gives_up(watched(calm, [1.1] * 8))
    assert known.gives_up(watched(calm, [0.39] * 8)) and not known.gives_up(watched(calm, [0.41] * 8))
    assert known.gives_up(watched(calm, [1.3, 1.2, 1.1, 1.0, 0.6, 0.5, 0.5, 0.5])), "sinks to 0.84"
    assert not known.gives_up(watched(calm, [1.3, 1.2, 1.2, 1.1, 1.1, 1.1, 1.1, 1.1])), "sinks to 1.15"
    far = [6.0, 1.0, 1.0, 1.0, 1.0, 0.99, 0.98, 0.97, 0.96]
    assert known.gives_up(watched([1.0] * 9, far)), "0.99 is the mean of the last 8, 1.54 that of 9"
    assert not known.gives_up(watched(calm, far[:8])), "1.62 is the mean of 8, 0.99 that of the last 7"
    assert known.gives_up(watched([1.0, 1.0, 1.0, 1.0, 2.0, 2.5, 3.0], [1.1] * 7))
    assert not known.gives_up(watched([1.0, 1.0, 1.0, 1.0, 2.0, 2.5], [1.1] * 6)), "twice is not three times"
    shared = watched([1.0, 1.0, 1.0, 1.0, 2.0, 2.5, 3.0, 1.0], [1.1] * 8, born=7)
    assert not known.gives_up(shared), "what its parent wrote is its parent's affair"


def test_refuses_nonsense() -> None:
    for wrong in ({"roots": 0}, {"piece": 0}, {"uncertain": 1.5}, {"unsure": -0.1}):
        with pytest.raises(ConfigurationError, match="ConfidentTree needs"):
            ConfidentTree(**wrong)  # type: ignore[arg-type]
