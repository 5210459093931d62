"""CPL's search (2409.08642): a tree of steps, and of each node the best child against the worst as a pair.

Each simulation goes down from the root to the child of the highest PUCT = Q + explore * prior * sqrt(N of the parent) /
(1 + N), prior = exp(mean log p of its tokens), makes children of the leaf and backs up +1 for each that ended right, -1
for each that ended wrong. Readings: steps are pieces of so many tokens, where the paper's are steps of a written plan.
No value model: a child that has not ended is worth nothing yet. Every token may be in one pair only, so of the pairs
(Q > 0, Q < 0) of a node the widest is taken; one that holds an end counts 0.3 of its Q, as the paper's solutions do.
Papers: cpl
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.generate.partners import Player
from strop.generate.search import TreeNode, as_attempt, back_up_mean, best_and_worst, grow, leaf, quality
from strop.roles import Strategy
from strop.types import Group, Outcome, Start, Trajectory

_SOLUTION = 0.3  # of Q, in a pair that holds an end
SIMULATIONS = "simulations"  # the fact of how many came before


@dataclass(frozen=True)
class PlanSearch(Strategy):
    """As many simulations as there are starts; the pairs of all nodes are brought, each a family.

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
            node = leaf(root, self.puct)
            if node.is_open:
                await self._expand(node, play)
            elif node.is_ended:
                back_up_mean(node, quality(node))  # once more the same
            else:
                back_up_mean(node, -1.0)  # the world failed it: not to be sought again
        return _brought(root)

    async def _expand(self, node: TreeNode, play: Player) -> None:
        count = self.first if node.above is None else self.width
        pause = self.tokens if node.depth + 1 < self.deepest else 0
        children = await grow(node, [play.another() for _ in range(count)], pause, play)
        ended = [child for child in children if child.is_ended]
        paid = await play.score([child.piece for child in ended if child.piece is not None]) if ended else []
        for child, reward in zip(ended, paid, strict=True):
            is_right = reward is not None and reward > 0.5 and child.piece is not None
            is_whole = child.piece is not None and child.piece.outcome is Outcome.FINISHED
            back_up_mean(child, 1.0 if is_right and is_whole else -1.0)

    def puct(self, node: TreeNode) -> float:
        assert node.above is not None
        likely = math.exp(-node.surprise)
        return quality(node) + self.explore * likely * math.sqrt(node.above.visits) / (1 + node.visits)


def _brought(root: TreeNode) -> list[Trajectory]:
    found: list[Trajectory] = []
    for node in root.walk():
        pair = best_and_worst(node)
        if pair is not None and quality(pair[0]) > 0 > quality(pair[1]):
            scale = _SOLUTION if any(each.is_ended for each in pair) else 1.0
            family = "root" if node.piece is None else node.piece.id
            found += [as_attempt(each, scale * quality(each), family) for each in pair]
    if found:
        return found
    return [as_attempt(node, 0.0, "") for node in root.below[:1]]
