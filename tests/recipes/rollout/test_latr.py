"""LATR's tree: which runners-up open a path, which paths are dropped, and how all are sampled to their ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.tree_search.parallel_decode import instead
from strop.recipes.rollout.latr import Lookahead, distance
from strop.training.requirements import PolicyStatistic
from strop.types import Group, Origin, Rollout, Start
from tests.generate.talking import END, ids
from tests.recipes.rollout.test_ettrl import Completions, player

Close = dict[tuple[str, int], tuple[float, float, str]]


def looked(folder: Path, completions: list[str], close: Close, env: Completions) -> GroupPlayer:
    """Of the sampled tokens (rollout, place) named, first and second probability and the second's letter."""

    async def statistics(groups: list[Group], needs: frozenset[PolicyStatistic]) -> None:
        for rollout in groups[0].scored:
            rows = np.tile(np.array([0.9, 0.1, 0.0, 0.0], np.float32), (rollout.num_tokens, 1))
            for (name, place), (first, second, letter) in close.items():
                if name == rollout.id and place < len(rows):
                    rows[place] = first, second, 0, ids(letter)[0]
            rollout.policy_statistics["top 2"] = rows

    play = player(folder, completions, {}, env)
    play.policy_statistic = statistics
    return play


def grown(play: GroupPlayer, strategy: Lookahead, starts: int, version: int = 0) -> list[Rollout]:
    strategy.meet(play.policy)
    play.group.version = version
    return asyncio.run(strategy(play.group, [play.another() for _ in range(starts)], play))


COMPLETIONS = ["abc", "c", "def", "z", "gh|", "w|", "k|"]
CLOSE: Close = {("0/0", 1): (0.4, 0.3, "x"), ("0/0", 4): (0.4, 0.3, "y")}


def test_a_look_alike_is_dropped_and_the_next_close_call_opens_a_path(tmp_path: Path) -> None:
    """`axc` beside `abc`: one edit in the two tokens after the fork. `abcdyz` beside `abcdef`: two."""
    play = looked(tmp_path, COMPLETIONS, CLOSE, Completions(1))
    strategy = Lookahead(edits=0.6, ages=(2,), longest=6, piece=3)
    root, other, copy = found = grown(play, strategy, 3)
    assert [each.completion for each in found] == ["abcdefgh", "abcdyzw", "abcdefk"]
    assert {each.origin for each in found} == {Origin.BRANCHED}, "greedy in part, so no pass rate counts them"
    assert (root.parent, other.parent) == ("", root.id)
    assert other.turns[0].prefix.tolist() == ids("abcd") and other.turns[0].tokens.tolist() == ids("yzw|")
    assert other.turns[0].versions.tolist()[0] == -1 and (other.turns[0].versions[1:] > 0).all(), "nobody drew y"
    assert other.num_sampled == 3 and copy.turns[0].prefix.tolist() == ids("abcdef") and copy.parent == root.id
    (alike,) = play.unused(found)
    assert alike.turns[0].message.content == "axc" and alike.turns[0].sampling.temperature == 0.0
    assert {each.turns[0].sampling.temperature for each in found} == {1.0}, "sampled from there on"
    assert [each.facts["lookalikes"] for each in found] == [1.0] * 3
    assert sum(each.num_sampled for each in (*found, alike)) == sum(map(len, COMPLETIONS))


def test_less_of_a_difference_may_be_enough(tmp_path: Path) -> None:
    """The same with 0.4 edits per token: `axc` stays, and only one further path has room."""
    completions = ["abc", "c", "def", "fgh", "z", "gh|", "w|", "k|"]
    found = grown(
        looked(tmp_path, completions, CLOSE, Completions(1)), Lookahead(edits=0.4, ages=(2,), longest=6, piece=3), 3
    )
    assert [each.completion for each in found] == ["abcdefgh", "axcfghw", "abcdyzk"]
    full = grown(
        looked(tmp_path, completions, CLOSE, Completions(1)), Lookahead(edits=0.4, ages=(2,), longest=6, piece=3), 2
    )
    assert len(full) == 2 and full[1].completion.startswith("axc"), "never more than there is room for"


@pytest.mark.parametrize(
    ("strategy", "branches"),
    [
        (Lookahead(0.2, 0.3, ages=(2,), longest=3, piece=3), 1),
        (Lookahead(0.25, 0.3, ages=(2,), longest=3, piece=3), 0),  # p2 is not above
        (Lookahead(0.2, 0.25, ages=(2,), longest=3, piece=3), 0),  # p1 - p2 is not below
        (Lookahead(0.5, 1.0, ages=(2,), longest=3, piece=3), 0),  # no runner-up has more than a half
        (Lookahead(0.0, 0.0, ages=(2,), longest=3, piece=3), 0),
    ],
)
def test_thresholds(tmp_path: Path, strategy: Lookahead, branches: int) -> None:
    close: Close = {("0/0", 1): (0.5, 0.25, "x")}
    completions = ["abc", "qr", "s|", "t|"] if branches else ["abc", "s|", "t|"]
    found = grown(looked(tmp_path, completions, close, Completions(1)), strategy, 2)
    assert sum(each.completion.startswith("ax") for each in found) == branches


def test_the_tree_ends_once_it_is_full_and_its_youngest_is_old_enough(tmp_path: Path) -> None:
    """The second path was born at 1: at 3 tokens that is 2 ago, as old as its comparison; at 6 of 9 it is enough."""
    close: Close = {("0/0", 1): (0.4, 0.3, "x")}
    play = looked(tmp_path, ["abc", "qr", "def", "stu", "v|", "w|"], close, Completions(1))
    found = grown(play, Lookahead(ages=(2,), longest=9, piece=3), 2)
    assert [each.completion for each in found] == ["abcdefv", "axqstuw"]


def test_shares_by_version_and_plain_rollouts_beside_the_tree(tmp_path: Path) -> None:
    strategy = Lookahead()
    assert [strategy.share(version) for version in (0, 9, 10, 20, 79, 80, 200, 900)] == [
        1.0, 1.0, 0.75, 0.5, 0.5, 0.25, 0.0, 0.0,
    ]  # fmt: skip
    plain = grown(looked(tmp_path, ["a|", "b|"], {}, Completions(1)), Lookahead(), 2, version=200)
    assert [each.completion for each in plain] == ["a", "b"] and all(each.facts == {} for each in plain)
    mixed = grown(
        looked(tmp_path, ["ab", "c|", "d|"], {}, Completions(1)), Lookahead(longest=2, piece=2, ages=(1,)), 2, 20
    )
    assert [each.completion for each in mixed] == ["abc", "d"]


def test_what_ended_is_left_alone_and_a_path_may_open_in_a_later_completion(tmp_path: Path) -> None:
    close: Close = {("0/0", 2): (0.4, 0.3, "x")}
    play = looked(tmp_path, ["a|", "bc", "q", "u|", "v|"], close, Completions(2))
    found = grown(play, Lookahead(ages=(1,), longest=4, piece=4), 2)
    assert [turn.message.content for turn in found[0].turns] == ["a", "bcu"]
    assert [turn.message.content for turn in found[1].turns] == ["a", "xqv"]
    assert [turn.num_prefix for turn in found[1].turns] == [2, 0] and found[1].turns[1].tokens.tolist() == ids("xqv|")
    ended = grown(looked(tmp_path, ["a|", "b|"], {}, Completions(1)), Lookahead(longest=4, piece=4), 2)
    assert [each.completion for each in ended] == ["a", "b"], "what ended cannot be gone on from"


def test_a_runner_up_that_ends_the_completion(tmp_path: Path) -> None:
    play = player(tmp_path, ["abc|"], {}, Completions(1))
    root = asyncio.run(play(play.another()))
    (turn,) = instead(root.turns, 2, END, play.policy.template)
    assert turn.whole.tolist() == ids("ab|") and turn.message.content == "ab" and turn.num_prefix == 2
    branch = asyncio.run(play(play.another(turns=(turn,))))
    assert branch.completion == "ab" and branch.num_sampled == 0


def test_edit_distance() -> None:
    pairs = [("kitten", "sitting", 3), ("abc", "abc", 0), ("abc", "", 3), ("abcd", "bcde", 2), ("ab", "ba", 2)]
    for one, other, expected in pairs:
        assert distance(np.array(ids(one)), np.array(ids(other))) == expected


def test_refuses_nonsense() -> None:
    for wrong in ({"ages": ()}, {"ages": (3, 2)}, {"ages": (0,)}, {"longest": 0}, {"piece": 0}):
        with pytest.raises(ConfigurationError, match="ages that rise"):
            Lookahead(**wrong)  # type: ignore[arg-type]
    for shares in ((), ((1, 0.5),), ((0, 1.5),)):
        with pytest.raises(ConfigurationError, match="shares from 0 to 1"):
            Lookahead(shares=shares)
    with pytest.raises(ConfigurationError, match="call meet"):
        asyncio.run(Lookahead()(Group(0, None, []), [Start("0/0", 0)], None))  # type: ignore[arg-type]


def test_the_token_that_opened_a_path_opens_no_other_and_the_next_one_may(tmp_path: Path) -> None:
    """`x` is a close call in its own path, too: nothing comes of that, but `y` opens a third where `q` was near."""
    close: Close = {("0/0", 1): (0.4, 0.3, "x"), ("0/1", 0): (0.4, 0.3, "z"), ("0/1", 1): (0.4, 0.3, "y")}
    play = looked(tmp_path, ["abc", "q", "s|", "t|", "u|"], close, Completions(1))
    found = grown(play, Lookahead(ages=(9,), longest=3, piece=3), 3)
    assert [each.completion for each in found] == ["abcs", "axqt", "axyu"]
    assert [each.parent for each in found] == ["", "0/0", "0/1"]


def test_earlier_places_go_first_whichever_path_they_are_in(tmp_path: Path) -> None:
    """Close calls at 1 and 3 of the first path, and at 2 of the second: with room for three, the last one is lost."""
    close: Close = {("0/0", 1): (0.4, 0.3, "x"), ("0/0", 3): (0.4, 0.3, "y"), ("0/1", 1): (0.4, 0.3, "z")}
    play = looked(tmp_path, ["abcd", "qr", "k", "s|", "t|", "u|"], close, Completions(1))
    found = grown(play, Lookahead(ages=(9,), longest=4, piece=4), 3)
    assert [each.completion for each in found] == ["abcds", "axqrt", "axzku"]


@pytest.mark.parametrize(("completions", "dropped"), [(["abc|", "c|"], 0), (["abcd", "cd", "e|", "f|"], 1)])
def test_what_ended_is_no_look_alike(tmp_path: Path, completions: list[str], dropped: int) -> None:
    """One edit in the three tokens after the fork, which are the last of both, or not."""
    play = looked(tmp_path, completions, {("0/0", 1): (0.4, 0.3, "x")}, Completions(1))
    found = grown(play, Lookahead(edits=0.6, ages=(3,), longest=4, piece=4), 2)
    assert [each.facts["lookalikes"] for each in found] == [dropped] * 2
    assert [each.completion for each in found] == (["abcde", "abcdf"] if dropped else ["abc", "axc"])
