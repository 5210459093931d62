"""COS(M+O)S: MCTS over steps rewarded for coherence and curiosity; ORPO on the best and worst child of each node.

Title: COS(M+O)S: Curiosity and RL-Enhanced MCTS for Exploring Story Space via Language Models
Paper: arXiv 2501.17104 (2025)
Claim: 67 to 77 % of readers favor the expansions it rates highest; a 3B model comes within 0.06 SD of one of 70B.
Reading: Only the abstract and summaries are public; the mechanism describes the curiosity curve and the search. The
    weight of the odds-ratio term is ORPO's own. `group_size` counts simulations. Pairs come from the current policy at
    each step, with one optimizer step per batch. Surprise is measured under the initial model, so the policy cannot
    exploit it.
Left out: Stories, and a learned value of their coherence: the environment's reward for a finished rollout takes its
    place.
Acts: fact/curiosity > 0 and margin != 0 with tokens=20, env=arithmetic:3
Break: strategy.surprise=0: a step is worth its coherence alone
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.from_strategy import Noted
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.tree_search.nodes import TreeNode, as_pairs, back_up_mean, grow, leaf, quality
from strop.recipes.setting import Setting
from strop.roles import Player, Strategy
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Orpo
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import REFERENCE_LOGPROBS
from strop.types import Group, Rollout, Start

# COS(M+O)S' search (2501.17104): a tree of steps, valued by coherence plus moderate surprise.
#
# Each simulation descends by UCB = Q + explore * sqrt(ln N of the parent / N), adds `width` children to the leaf, and
# backs up each child's value: coherence + curiosity. Readings, since only the abstract is public: coherence is the
# environment's reward of a finished rollout, 0 before; curiosity is exp(-(s - m)^2 / (2 d^2)), where s is the mean
# surprise of the step under the reference, m and d the mean and standard deviation over the steps of the tree so far.
# The best and the worst child of each node form a pair. Steps are pieces of a fixed number of tokens.

CURIOSITY = "curiosity"  # fact: how near a step is to the preferred surprise, from 0 to 1


@dataclass(frozen=True)
class PlotSearch(Strategy):
    """Strategy with one simulation per start; it returns the pairs of all nodes, each a comparison group.

    Without any pair it returns a single piece, for gates to drop.
    """

    tokens: int = 8  # of a step
    deepest: int = 8  # steps of a rollout; the last one is played to the end
    width: int = 4  # children of a node
    explore: float = 1.4  # weight of the bonus for nodes with few visits
    surprise: float = 1.0  # weight of curiosity beside coherence

    def __post_init__(self) -> None:
        if min(self.tokens, self.deepest, self.width) < 1 or self.explore < 0:
            raise ConfigurationError(f"PlotSearch needs tokens, deepest and width >= 1 and explore >= 0, got {self}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        root, surprises = TreeNode(), list[float]()
        for _ in starts:
            node = leaf(root, self.upper_bound)
            if node.is_open:
                await self._expand(node, surprises, play)
            elif node.is_ended:
                back_up_mean(node, quality(node))  # the same value once more
        return as_pairs(root, lambda best, worst: 1.0)

    async def _expand(self, node: TreeNode, surprises: list[float], play: Player) -> None:
        pause = self.tokens if node.depth + 1 < self.deepest else 0
        made = await grow(node, [play.another() for _ in range(self.width)], pause, play)
        usable = [
            child for child in made if child.piece and child.piece.num_tokens and (child.is_open or child.is_ended)
        ]
        pieces = [child.piece for child in usable if child.piece is not None]
        looks = await play.look(pieces, frozenset({REFERENCE_LOGPROBS})) if pieces else []
        own = [float(-look[REFERENCE_LOGPROBS.name].mean()) for look in looks]
        surprises += own
        middle, spread = float(np.mean(surprises or [0.0])), float(np.std(surprises or [0.0]))
        paid = await play.score([piece for piece in pieces if piece.is_scored])
        rewards = iter(None if scored is None else scored.reward for scored in paid)
        for child, surprise in zip(usable, own, strict=True):
            coherence = next(rewards) if child.is_ended else 0.0
            interest = self.surprise * curiosity(surprise, middle, spread)
            assert child.piece is not None
            child.piece.facts[CURIOSITY] = interest
            if coherence is not None:  # None: the reward failed
                back_up_mean(child, coherence + interest)

    def upper_bound(self, node: TreeNode) -> float:
        assert node.above is not None
        if not node.visits:
            return -math.inf  # the environment failed
        return quality(node) + self.explore * math.sqrt(math.log(max(node.above.visits, 1)) / node.visits)


def curiosity(surprise: float, middle: float, spread: float) -> float:
    """An inverted U: 1 at the mean surprise, less for the predictable and for the incomprehensible."""
    return math.exp(-((surprise - middle) ** 2) / (2 * max(spread, 1e-6) ** 2))


def cosmos(
    setting: Setting = Setting(env="countdown:4"),
    tokens: int = 8,  # of a step
    width: int = 4,  # children of a node
    explore: float = 1.4,  # weight of the bonus for nodes with few visits
    odds: float = 0.1,  # weight of the odds-ratio term relative to the likelihood
) -> Run:
    """group_size simulations per task."""
    run = setting.run(
        "cosmos",
        Constant(),
        (Orpo(odds),),
        strategy=PlotSearch(tokens, max(setting.max_tokens // tokens, 1), width, explore),
        gates=(ZeroVariance(),),
        reduction=SequenceMean(),
    )
    judged = as_one(run.rewards)
    run.rewards = (Noted(judged),)
    return run
