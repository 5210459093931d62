"""LATR: GRPO on lookahead trees; greedy paths branch at close calls, similar branches are dropped, the rest is sampled.

Title: Lookahead Tree-Based Rollouts for Enhanced Trajectory-Level Exploration in Reinforcement Learning with Verifiable
    Rewards
Paper: arXiv 2510.24302 (2025)
Claim: Policies learn 131 % faster on average and end 4.2 % better in pass@1, under GRPO and DAPO.
Reading: The release's GRPO for countdown: thresholds 0.25 and 0.15, groups of 8, one optimizer step per batch, a KL
    penalty of 0.01. The share of tree rollouts decreases in the release's steps. Completions here have 25 tokens, not
    1024: paths are compared 4 and 8 tokens after they branch, not 20, 30 and 50, and trees have at most 16 tokens.
    Ratios are to the policy before the step, as there; tokens of the tree are not sampled from it, which the paper does
    not correct. Tokens that rollouts share get the sum of their advantages.
Left out: The mathematics variant with common suffixes and ROUGE-L. The share of prompts whose trees must be full, since
    each tree ends by itself.
Acts: share/branched > 0 and fact/lookalikes > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.policy import Policy
from strop.generate.tree_search.branch import branch_of
from strop.generate.tree_search.parallel_decode import LivePath
from strop.recipes.setting import Setting
from strop.roles import Player, Strategy
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_relative import GroupStandard
from strop.training.corrections.importance_weights import Clamped
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.top_k_stats import top
from strop.types import Group, IntArray, Origin, Rollout, Sampling, Start

# LATR's tree (2510.24302): greedy paths branch where the second token is about as likely as the first; similar branches
# are dropped.
#
# As released, for countdown: the likeliest token continues a path. The second one opens another path where p2 >
# absolute and p1 - p2 < relative, as long as fewer than round(n * share) paths live, earlier positions first. Some
# tokens after it branched, a path is compared with its parent over the same tokens and dropped where edits / tokens is
# too small, unless one of them ended. Once the tree is full and its youngest path is older than the last comparison, or
# at a maximal length, every path is sampled to its end. The rollouts outside the tree are sampled from the prompt, and
# unused slots of the tree continue the first path. Readings: paths advance `piece` tokens at a time, and comparisons
# are made in between. Tokens of the tree are not sampled from the policy, which is not corrected; the token that opens
# a path has no sampling version.

_TOP = top(2)
DROPPED = "lookalikes"  # fact: number of paths of its tree that were dropped as similar


@dataclass
class Lookahead(Strategy):
    """Strategy that grows a share of the starts, set by the weight version, as a tree and samples the others
    plainly.
    """

    absolute: float = 0.25  # least probability of a second token that opens a path
    relative: float = 0.15  # largest distance to the probability of the first token
    edits: float = 0.4  # least edit distance to the parent, per token
    ages: tuple[int, ...] = (20, 30, 50)  # tokens after branching at which a path is compared with its parent
    longest: int = 512  # tokens of completions in the tree
    piece: int = 8  # tokens between two checks
    # (step, share of tree rollouts from it on)
    shares: tuple[tuple[int, float], ...] = ((0, 1.0), (10, 0.75), (20, 0.5), (80, 0.25), (200, 0.0))

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sizes = (*self.ages, self.longest, self.piece)
        if min(sizes) < 1 or not self.ages or list(self.ages) != sorted(self.ages):
            raise ConfigurationError(f"Lookahead needs ages that rise, longest and piece, all >= 1, got {self}")
        if not self.shares or self.shares[0][0] != 0 or any(not 0 <= share <= 1 for _, share in self.shares):
            raise ConfigurationError(f"Lookahead needs shares from 0 to 1, the first from step 0 on, got {self.shares}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        capacity = round(len(starts) * self.share(group.version))
        tree = await self._tree(starts[:capacity], play) if capacity else []
        return [*tree, *await together(play(start) for start in starts[capacity:])]

    def share(self, version: int) -> float:
        return next(share for step, share in reversed(self.shares) if version >= step)

    async def _tree(self, starts: Sequence[Start], play: Player) -> list[Rollout]:
        trunk = replace(starts[0], origin=Origin.BRANCHED)  # partly greedy, so not sampled from the policy
        root, spare, size, dropped = LivePath(trunk), list(starts[1:]), 0, 0
        live = [root]
        while size < self.longest and any(path.is_open for path in live):
            before, size = size, min(size + self.piece, self.longest)
            await self._advance(live, before, size, len(starts), spare, play)
            alike = [path for path in live if self._is_alike(path, before, size)]
            live, dropped = [path for path in live if path not in alike], dropped + len(alike)
            if len(live) == len(starts) and size - max(path.born for path in live) > self.ages[-1]:
                break
        empty = [_copy(root, _next(spare, play)) for _ in range(len(starts) - len(live))]
        made = await together(path.finish(play, self._known.sampling) for path in [*live, *empty])
        return [replace(each, facts=each.facts | {DROPPED: float(dropped)}) for each in made]

    async def _advance(
        self, live: list[LivePath], before: int, size: int, capacity: int, spare: list[Start], play: Player
    ) -> None:
        """Extend all paths to `size` tokens, and open new ones on the way, earlier positions first."""
        greedy = Sampling(0.0, max_tokens=self._known.sampling.max_tokens, stop=self._known.sampling.stop)
        await together(path.extend(size, play, greedy) for path in live)
        openings = await self._openings(live, before, play)
        while openings and len(live) < capacity:
            place, path, at, token = openings.pop(0)
            child = path.offshoot(at, token, _next(spare, play), self._known.template)
            live.append(child)
            await child.extend(size, play, greedy)
            openings = sorted([*openings, *await self._openings([child], place + 1, play)], key=lambda each: each[0])

    async def _openings(
        self, paths: Sequence[LivePath], since: int, play: Player
    ) -> list[tuple[int, LivePath, int, int]]:
        """Positions from `since` on where the second token opens a path: position, path, tokens before, token."""
        played = [path for path in paths if path.rollout is not None and path.rollout.num_tokens]
        rollouts = [path.rollout for path in played if path.rollout is not None]
        looks = await play.look(rollouts, frozenset({_TOP})) if rollouts else []
        found = []
        for path, look in zip(played, looks, strict=True):
            first, second, _, token = look[_TOP.name].T  # [N] each
            is_close = (second > self.absolute) & (first - second < self.relative) & (path.places >= since)
            found += [(int(path.places[at]), path, int(at), int(token[at])) for at in np.flatnonzero(is_close)]
        return sorted(found, key=lambda each: each[0])

    def _is_alike(self, path: LivePath, before: int, size: int) -> bool:
        """Whether it is nearly equal to its parent at one of the ages reached since `before`."""
        if path.above is None:
            return False
        reached = [age for age in self.ages if before - path.born < age <= size - path.born]
        return any(self._resembles(path, path.above, age) for age in reached)

    def _resembles(self, path: LivePath, parent: LivePath, age: int) -> bool:
        own, other = (each.tokens[path.born : path.born + age] for each in (path, parent))
        is_whole = len(own) == len(other) == age
        if not is_whole or self._known.template.ends & {*own.tolist(), *other.tolist()}:
            return False
        return distance(own, other) / age < self.edits

    @property
    def _known(self) -> Policy:
        if self._policy is None:
            raise ConfigurationError("Lookahead has no policy yet: call meet(policy) first")
        return self._policy


def _next(spare: list[Start], play: Player) -> Start:
    return spare.pop(0) if spare else play.another()


def _copy(root: LivePath, start: Start) -> LivePath:
    """An unused slot of the tree: it continues the first path, or starts from the prompt where that ended."""
    if root.rollout is None or not root.is_open:
        return LivePath(start)
    branch = branch_of(root.rollout, root.rollout.num_tokens, start)
    return LivePath(branch, branch.turns)


def distance(one: IntArray, other: IntArray) -> int:
    """Edit distance: fewest tokens to insert, delete or replace."""
    row = list(range(len(other) + 1))
    for number, token in enumerate(one.tolist(), 1):
        above, row[0] = row[0], number
        for place, against in enumerate(other.tolist(), 1):
            above, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, above + (token != against))
    return row[-1]


_AGES, _LONGEST, _PIECE = (4, 8), 16, 4  # tokens


def latr(
    setting: Setting = Setting(env="countdown:4"),
    absolute: float = 0.25,  # least probability of a second token that opens a path
    relative: float = 0.15,  # largest distance to the probability of the first token
    edits: float = 0.4,  # least edit distance to the parent, per token
    kl: float = 0.01,  # weight of the KL penalty to the reference
) -> Run:
    """group_size rollouts, at first all of one tree, from step 200 on none."""
    run = setting.run(
        "latr",
        AlongTree(GroupStandard()),
        (Clip(0.2, 0.2, anchor="proximal"), Kl("k3", kl)),
        strategy=Lookahead(absolute, relative, edits, _AGES, _LONGEST, _PIECE),
        correction=Clamped(1.0, 1.0, target="proximal"),  # 1 for every token: none
    )
    return replace(run, rescore_every=0)  # greedy tokens have probability 1 where they were sampled
