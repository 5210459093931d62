"""CPL's search (2409.08642): a tree of steps, and of each node the best child against the worst as a pair.

Each simulation goes down from the root to the child of the highest PUCT = Q + explore * prior * sqrt(N of the parent) /
(1 + N), prior = exp(mean log p of its tokens), past all that ended, visits the leaf, makes its children, of equal ones
the first, and backs up +1 for each that ended right, -1 for each that ended wrong, once. Readings: steps are pieces of
so many tokens, where the paper's are steps of a written plan. No value model: the visit of a leaf is worth 0. Every
token may be in one pair only, so of the pairs (Q > 0, Q < 0) of a node the widest is taken; one that holds an end
counts 0.3 of its Q, as the paper's solutions do.
Papers: cpl
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.tree_search.nodes import TreeNode, as_pairs, back_up_mean, distinct, grow, growing, quality
from strop.roles import Strategy
from strop.types import Group, Outcome, Start, Trajectory

_SOLUTION = 0.3  # of Q, in a pair that holds an end


@dataclass(frozen=True)
class PlanSearch(Strategy):
    """As many simulations as there are starts, or until all ended; the pairs of all nodes are brought, each a family.

    Where there is no pair one piece is brought alone, for gates to drop.
    """

    tokens: int = 8  # of a step
    deepest: int = 6  # steps of an attempt; the last is played to the end
    first: int = 5  # children of the root
    width: int = 3  # of every other node
    explore: float = 1.5  # weight of what is likely and seldom visited

    def __post_init__(self) -> None:
        if min(self.tokens, self.deepest, self.first, self.width) < 1 or self.explore < 0:
            raise ConfigurationError(
                f"PlanSearch needs tokens, deepest, first and width >= 1 and explore >= 0, got {self}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        root = TreeNode()
        for _ in starts:
            node = growing(root, self.puct)
            if node is None:
                break
            await self._expand(node, play)
        return as_pairs(root, _scale)

    async def _expand(self, node: TreeNode, play: Player) -> None:
        count = self.first if node.above is None else self.width
        pause = self.tokens if node.depth + 1 < self.deepest else 0
        back_up_mean(node, 0.0)  # in place of a value model's word
        await grow(node, [play.another() for _ in range(count)], pause, play)
        node.below = distinct(node.below)
        ended = [child for child in node.below if child.is_ended]
        paid = await play.score([child.piece for child in ended if child.piece is not None]) if ended else []
        for child, reward in zip(ended, paid, strict=True):
            if reward is not None:  # else the reward failed, which says nothing
                is_whole = child.piece is not None and child.piece.outcome is Outcome.FINISHED
                back_up_mean(child, 1.0 if reward > 0.5 and is_whole else -1.0)

    def puct(self, node: TreeNode) -> float:
        assert node.above is not None
        likely = math.exp(-node.surprise)
        return quality(node) + self.explore * likely * math.sqrt(node.above.visits) / (1 + node.visits)


def _scale(best: TreeNode, worst: TreeNode) -> float:
    if not quality(best) > 0 > quality(worst):
        return 0.0
    return _SOLUTION if best.is_ended or worst.is_ended else 1.0
