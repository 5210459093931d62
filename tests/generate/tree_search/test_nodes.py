"""Trees of pieces: what a node knows, and pieces as one rollout, each token in one row."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from strop.generate.group_rollouts import GroupPlayer
from strop.generate.tree_search.nodes import TreeNode, grow, line, surprise
from strop.generate.turn_ops import as_prefix, joined, noted
from strop.types import Origin, Outcome
from tests.generate.talking import ids
from tests.recipes.rollout.test_ettrl import Completions, player


def grown(play: GroupPlayer, node: TreeNode, count: int, pause: int) -> list[TreeNode]:
    return asyncio.run(grow(node, [play.another() for _ in range(count)], pause, play))


def test_children_go_on_from_a_node_and_are_played_as_far_as_told(tmp_path: Path) -> None:
    play = player(tmp_path, ["abcd|", "x|", "yz|"], {}, Completions(1))
    root = TreeNode()
    (first,) = grown(play, root, 1, 3)
    ended, open_ = grown(play, first, 2, 2)
    assert root.is_open and first.is_open and open_.is_open and not first.is_ended
    assert ended.is_ended and not ended.is_open
    assert first.piece is not None and ended.piece is not None and open_.piece is not None
    assert first.piece.turns[0].tokens.tolist() == ids("abc") and first.piece.parent == ""
    assert ended.piece.turns[0].message.content == "abcx" and ended.piece.turns[0].tokens.tolist() == ids("x|")
    assert open_.piece.outcome is Outcome.PRUNED and open_.piece.parent == first.piece.id
    assert {node.piece.origin for node in (first, ended, open_) if node.piece} == {Origin.BRANCHED}
    assert [node.depth for node in (root, first, open_)] == [0, 1, 2] and line(open_) == [first, open_]
    assert list(root.walk()) == [root, first, ended, open_]
    assert surprise([first, ended]) == pytest.approx(0.5) and surprise([root]) == 0.0 == root.surprise


def test_what_the_env_failed_neither_ended_nor_goes_on(tmp_path: Path) -> None:
    (node,) = grown(player(tmp_path, ["a|"], {}, Completions(1, is_broken=True)), TreeNode(), 1, 9)
    assert not node.is_open and not node.is_ended


def test_joined_is_the_inverse_of_given_over_several_completions(tmp_path: Path) -> None:
    """`ab|` and the beginning of `cd|` as a first piece; the second goes on with `x|`, and a third completion."""
    play = player(tmp_path, ["ab|", "cd|", "x|", "y|"], {}, Completions(3))
    (first,) = grown(play, TreeNode(), 1, 4)
    (then,) = grown(play, first, 1, 0)
    assert first.piece is not None and then.piece is not None
    assert [turn.tokens.tolist() for turn in then.piece.turns] == [[], ids("x|"), ids("y|")]
    whole = joined(first.piece.turns, then.piece.turns)
    assert [turn.tokens.tolist() for turn in whole] == [ids("ab|"), ids("cx|"), ids("y|")]
    assert [turn.num_prefix for turn in whole] == [0, 0, 0]
    assert [turn.message.content for turn in whole] == ["ab", "cx", "y"]
    assert [turn.versions.tolist() for turn in whole] == [[1, 1, 1], [2, 3, 3], [4, 4]]
    assert [len(turn.logprobs) for turn in whole] == [3, 3, 2]
    for turn, own in zip(as_prefix(whole), then.piece.turns, strict=True):
        assert turn.prompt.tolist() == [*own.prompt.tolist(), *own.tokens.tolist()]
    rows = noted(whole, "worth", np.arange(8, dtype=np.float32))
    assert [turn.aux["worth"][len(turn.prompt) :].tolist() for turn in rows] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert not any(turn.aux["worth"][: len(turn.prompt)].any() for turn in rows)


def test_pieces_are_one_rollout_and_each_is_in_one(tmp_path: Path) -> None:
    """a with the children x and y; x with the child z. x and z are joined with a, then y stays given of a."""
    play = player(tmp_path, ["ab", "x|cd", "yz|", "u|", "v|"], {}, Completions(1))
    (a,) = grown(play, TreeNode(), 1, 1)
    x, y = grown(play, a, 2, 1)
    (z, _) = grown(play, x, 2, 1)
    pieces = [node.piece for node in (a, x, z) if node.piece is not None]
    whole = play.joined(pieces)
    assert whole.id == pieces[-1].id and whole.parent == "" and whole.turns[0].num_prefix == 0
    assert whole.turns[0].tokens.tolist() == ids("axu")
    assert a.piece is not None and y.piece is not None
    twig = play.joined([a.piece, y.piece])
    assert twig.id == y.piece.id and twig.parent == whole.id, "what it was given belongs to the other now"
    assert twig.turns[0].prefix.tolist() == ids("a") and twig.turns[0].tokens.tolist() == ids("y")
    (left,) = play.unused([whole, twig])
    assert left.parent == whole.id and left.num_tokens == 1
    assert sum(t.num_sampled for t in (whole, twig, left)) == 5, "each token once"
    with pytest.raises(ValueError, match=f"{a.piece.id} is part of {whole.id} already"):
        play.joined([a.piece])
