"""Tree of partial rollouts: each node is a segment of tokens after its parent's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strop.concurrency import together
from strop.generate.turn_ops import as_prefix
from strop.roles import Player
from strop.types import Origin, Outcome, Rollout, Start

WORTH = "noted"  # the fact of what a search found a piece to be worth, which is its reward


@dataclass(eq=False)
class TreeNode:
    """Segment of a rollout with its search statistics."""

    piece: Rollout | None = None  # None: nothing was said yet
    above: TreeNode | None = None
    below: list[TreeNode] = field(default_factory=list)
    visits: int = 0
    value: float = 0.0

    @property
    def depth(self) -> int:
        return 0 if self.above is None else self.above.depth + 1

    @property
    def is_open(self) -> bool:
        """Whether it can go on: it was paused and neither ended nor failed."""
        return self.piece is None or self.piece.outcome is Outcome.PRUNED

    @property
    def is_ended(self) -> bool:
        return self.piece is not None and self.piece.is_scored

    @property
    def surprise(self) -> float:
        """The mean of -log p over its tokens."""
        return surprise([self])

    @property
    def can_grow(self) -> bool:
        """Whether it or one below can go on and has not yet."""
        return any(node.is_open and not node.below for node in self.walk())

    @property
    def words(self) -> tuple[int, ...]:
        """The tokens that it wrote."""
        turns = () if self.piece is None else self.piece.turns
        return tuple(int(token) for turn in turns for token in turn.tokens)

    def walk(self) -> Iterator[TreeNode]:
        """Itself and all below, a parent before its children."""
        yield self
        for node in self.below:
            yield from node.walk()


def line(node: TreeNode) -> list[TreeNode]:
    """From the first piece to this one."""
    return [] if node.above is None else [*line(node.above), node]


def surprise(nodes: Sequence[TreeNode]) -> float:
    """The mean of -log p over the tokens of some nodes; 0 where there is none."""
    turns = [turn for node in nodes if node.piece is not None for turn in node.piece.turns]
    logprobs = np.concatenate([np.zeros(0), *(turn.logprobs for turn in turns)])
    return float(-logprobs.mean()) if len(logprobs) else 0.0


def leaf(root: TreeNode, score: Callable[[TreeNode], float]) -> TreeNode:
    """Down to a node without children, always to the child of the highest score; of equals the first."""
    node = root
    while node.below:
        node = max(node.below, key=score)
    return node


def growing(root: TreeNode, score: Callable[[TreeNode], float]) -> TreeNode | None:
    """The same, past all that ended or failed: to a node that can go on; None where nothing can."""
    node = root
    while node.below and node.can_grow:
        node = max((child for child in node.below if child.can_grow), key=score)
    return node if node.can_grow else None


def back_up_mean(node: TreeNode | None, worth: float) -> None:
    """A visit of this worth to a node and all above it; `value` is the sum, and their quotient the mean."""
    while node is not None:
        node.visits += 1
        node.value += worth
        node = node.above


def quality(node: TreeNode) -> float:
    """The mean worth of its visits; 0 without any."""
    return node.value / node.visits if node.visits else 0.0


def distinct(nodes: Sequence[TreeNode]) -> list[TreeNode]:
    """Of those that say the same the first."""
    said: dict[tuple[int, ...], TreeNode] = {}
    for node in nodes:
        said.setdefault(node.words, node)
    return list(said.values())


def best_and_worst(node: TreeNode) -> tuple[TreeNode, TreeNode] | None:
    """Of its visited children that say different things; None where fewer than two do, or all are worth the same."""
    ranked = sorted(distinct([child for child in node.below if child.visits and child.words]), key=quality)
    if len(ranked) < 2 or quality(ranked[0]) == quality(ranked[-1]):
        return None
    return ranked[-1], ranked[0]


def as_rollout(node: TreeNode, worth: float, comparison_group: str) -> Rollout:
    """A piece to learn from, with its worth as a fact; that it may go on does not matter any more."""
    assert node.piece is not None
    outcome = Outcome.TRUNCATED if node.is_open else node.piece.outcome
    return replace(
        node.piece, outcome=outcome, comparison_group=comparison_group, facts=node.piece.facts | {WORTH: worth}
    )


def as_pairs(root: TreeNode, scale: Callable[[TreeNode, TreeNode], float]) -> list[Rollout]:
    """Of every node the best child and the worst, a comparison group, worth `scale` times their quality; at 0 they are
    no pair.

    Where there is no pair, one piece alone.
    """
    found: list[Rollout] = []
    for node in root.walk():
        pair = best_and_worst(node)
        if pair is not None and (scaled := scale(*pair)):
            comparison_group = "root" if node.piece is None else node.piece.id
            found += [as_rollout(each, scaled * quality(each), comparison_group) for each in pair]
    return found or [as_rollout(node, 0.0, "") for node in root.below[:1]]


async def grow(node: TreeNode, starts: Sequence[Start], pause: int, play: Player) -> list[TreeNode]:
    """Go on from a node once for each start, for `pause` tokens (0: to the end); they are its children then."""
    begun = () if node.piece is None else as_prefix(node.piece.turns)
    parent = "" if node.piece is None else node.piece.id
    # selected by what came of them, none is a plain rollout of the policy
    asked = [replace(each, turns=begun, parent=parent, origin=Origin.BRANCHED, pause=pause) for each in starts]
    made = [TreeNode(piece, node) for piece in await together(play(start) for start in asked)]
    node.below += made
    return made
