"""ECHO's tree (2602.02150): paths branch at high entropy and low confidence, and are pruned where that lasts.

At each token H is the entropy of the ten likeliest tokens, renormalized, and C the mean probability of the five
likeliest. Group confidence is the mean of the last four C, tail confidence that of the last eight; the rise of H is its
distance from the mean of the four before. Readings: the release's thresholds (3.5 for H, 1.2 for group confidence) lie
outside the range of these quantities, so here they are quantiles over the group's paths so far. The other thresholds
keep their ratio to these two: a path branches where H rose by 0.2 / 3.5; it is pruned where H rose by 0.5 / 3.5 three
times in a row, where group confidence is below a third, or where tail confidence fell three times in a row and is below
1 / 1.2. A path branches once, at the first such token; it is itself one of the paths that leave it, the others start
with the likeliest other tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.policy import Policy
from strop.generate.tree_search.parallel_decode import LivePath
from strop.roles import Player, Strategy
from strop.training.top_k_stats import confidences, entropies, top
from strop.types import Group, Rollout, Start

_TOP = top(10)
_GROUP, _TAIL, _BEFORE, _RUNNING = 4, 8, 4, 3  # tokens
FAN = "fan"  # fact: number of paths that leave this path's first branching point
GIVEN_UP = "given_up"  # fact: number of pruned paths of the tree


@dataclass(eq=False)
class _Watched:
    """A path with H and C at each token of its completions."""

    path: LivePath
    entropy: NDArray[np.float64]  # [L]
    confidence: NDArray[np.float64]  # [L]
    tops: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 20)))  # [N, 20], of sampled tokens
    fan: int = 0  # paths that leave its branching point; 0: it has not branched

    @property
    def group_confidence(self) -> NDArray[np.float64]:
        return _means(self.confidence, _GROUP)

    @property
    def rises(self) -> NDArray[np.float64]:
        """Entropy minus the mean of the tokens before; 0 where there are too few: [L]."""
        before = np.concatenate([[0.0], _means(self.entropy, _BEFORE)[:-1]]) if len(self.entropy) else self.entropy
        return np.where(np.arange(len(self.entropy)) >= _BEFORE, self.entropy - before, 0.0)


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of entropy and group confidence for the paths of one group."""

    entropy: float
    confidence: float

    def branches(self, entropy: float, confidence: float, rise: float) -> bool:
        is_uncertain = entropy >= self.entropy and confidence <= self.confidence
        return is_uncertain and rise >= 0.2 / 3.5 * self.entropy

    def fan(self, entropy: float, confidence: float) -> int:
        """Number of paths that leave a token, 1 to 4: more for higher entropy, fewer for higher confidence."""
        least = self.entropy / 3.5
        above = (entropy - least) / max(self.entropy - least, 1e-12)
        surer = (confidence - self.confidence) / max(self.confidence, 1e-12)
        return min(max(math.floor(1 + 2 * above - surer + 0.5), 1), 4)

    def gives_up(self, watched: _Watched) -> bool:
        """Whether a path met a pruning condition at any of its own tokens."""
        own = slice(watched.path.born, None)
        tail = _means(watched.confidence, _TAIL)[own]
        low = watched.group_confidence[own] < self.confidence / 3
        falling = _lasting(np.diff(tail, prepend=tail[:1]) < 0) & (tail <= self.confidence / 1.2)
        rises = watched.rises[own]
        rising = _lasting(rises > 0) & (rises > 0.5 / 3.5 * self.entropy)
        return bool((low | falling | rising).any())


@dataclass
class ConfidentTree(Strategy):
    """Strategy that plays `roots` starts from the prompt; the others are for branches, or sampled plainly where none
    came.
    """

    roots: int = 16  # paths from the prompt
    uncertain: float = 0.95  # quantile of entropy from which a path may branch
    unsure: float = 0.5  # quantile of group confidence up to which a path may branch
    piece: int = 8  # tokens between two checks

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.roots < 1 or self.piece < 1 or not 0 <= self.uncertain <= 1 or not 0 <= self.unsure <= 1:
            raise ConfigurationError(f"ConfidentTree needs roots and piece >= 1, quantiles from 0 to 1, got {self}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        spare, size, dropped = list(starts[self.roots :]), 0, 0
        nothing = np.zeros(0)
        live = [_Watched(LivePath(start), nothing, nothing) for start in starts[: self.roots]]
        while any(each.path.is_open for each in live):
            before, size = size, size + self.piece
            await together(each.path.extend(size, play) for each in live)
            await self._look(live, play)
            known = self.thresholds(live)
            hopeless = [each for each in live if each.path.is_open and known.gives_up(each)]
            hopeless = hopeless[len(hopeless) == len(live) :]  # at least one path has to vote
            live, dropped = [each for each in live if each not in hopeless], dropped + len(hopeless)
            live += [child for each in live for child in self._offshoots(each, before, known, spare)]
        made = [_with_facts(each, dropped) for each in live]
        return [*made, *await together(play(start) for start in spare)]

    async def _look(self, live: Sequence[_Watched], play: Player) -> None:
        open_ = [each for each in live if each.path.rollout is not None and each.path.rollout.num_tokens]
        rollouts = [each.path.rollout for each in open_ if each.path.rollout is not None]
        looks = await play.look(rollouts, frozenset({_TOP})) if rollouts else []
        for each, look in zip(open_, looks, strict=True):
            each.tops = look[_TOP.name].astype(np.float64)
            given = each.path.num_given
            each.entropy = np.concatenate([each.entropy[:given], entropies(each.tops)])
            each.confidence = np.concatenate([each.confidence[:given], confidences(each.tops)])

    def thresholds(self, live: Sequence[_Watched]) -> Thresholds:
        """Quantiles over the tokens of all paths, each token once."""
        own = [(each, slice(each.path.born, None)) for each in live]
        entropy = np.concatenate([np.zeros(0), *(each.entropy[part] for each, part in own)])
        sure = np.concatenate([np.zeros(0), *(each.group_confidence[part] for each, part in own)])
        if not len(entropy):
            return Thresholds(math.inf, 0.0)
        return Thresholds(float(np.quantile(entropy, self.uncertain)), float(np.quantile(sure, self.unsure)))

    def _offshoots(self, each: _Watched, since: int, known: Thresholds, spare: list[Start]) -> list[_Watched]:
        """New paths from the first token at which this path should branch."""
        if each.fan or not spare or self._policy is None:
            return []
        metrics = (each.entropy, each.group_confidence, each.rises)
        places = [int(place) for place in each.path.places if place >= max(since, _BEFORE, each.path.born + 1)]
        place = next((p for p in places if known.branches(*(float(column[p]) for column in metrics))), None)
        if place is None:
            return []
        each.fan = known.fan(float(each.entropy[place]), float(each.group_confidence[place]))
        at = int(np.flatnonzero(each.path.places == place)[0])
        others = [int(token) for token in each.tops[at, 10:] if int(token) != int(each.path.tokens[place])]
        found = []
        for token in others[: min(each.fan - 1, len(spare))]:
            path = each.path.offshoot(at, token, spare.pop(0), self._policy.template)
            found.append(_Watched(path, each.entropy[:place], each.confidence[:place]))
        return found


def _with_facts(each: _Watched, dropped: int) -> Rollout:
    assert each.path.rollout is not None
    facts = {GIVEN_UP: float(dropped)} | ({FAN: float(each.fan)} if each.fan else {})
    return replace(each.path.rollout, facts=each.path.rollout.facts | facts)


def _means(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """At each position the mean of the last `count` values, or of as many as there are: [L]."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    firsts = np.maximum(ends - count, 0)
    return np.asarray((sums[ends] - sums[firsts]) / (ends - firsts))


def _lasting(is_true: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether it is true here and at the two positions before: [L]."""
    before = np.concatenate([np.zeros(_RUNNING - 1, dtype=bool), is_true])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(before, _RUNNING).all(1)) if len(is_true) else is_true
