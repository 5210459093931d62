"""Selection bias: difference between trained and offered tasks, by source, level and length.

Gates, failures and speed all select. The policy learns from what is left, and the loss does not know of the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from strop.storage.ledger.schema import Offered

_LARGE = 0.05  # total variation: the share of trained groups that would have to be others
_LARGE_LENGTH = 0.1  # of the mean
_SIGMAS = 2.576  # both tests warn at 1%


@dataclass(frozen=True)
class KindShare:
    """One kind of task: its share of the offered and of the trained groups."""

    name: str
    offered: int
    trained: int
    offered_share: float
    trained_share: float


@dataclass(frozen=True)
class Selection:
    """Difference of two sets of groups: half the sum of |trained share - offered share|; 0: the same, 1: disjoint."""

    offered: int
    trained: int
    source_distance: float
    level_distance: float
    tokens_offered: float  # per rollout, averaged over groups
    tokens_trained: float
    levels: tuple[KindShare, ...]
    warnings: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def selection_of(groups: Sequence[Offered]) -> Selection:
    """Compare all admitted groups with those that were trained."""
    chosen = [group for group in groups if group.is_trained]
    sources = [_shares([(g.source,) for g in each]) for each in (groups, chosen)]
    levels = [_shares([(g.source, f"level {g.level}") for g in each]) for each in (groups, chosen)]
    lengths = [np.array([g.tokens for g in groups if g.tokens is not None])]
    lengths.append(np.array([g.trained_tokens for g in chosen if g.trained_tokens is not None]))
    means = [float(each.mean()) if len(each) else 0.0 for each in lengths]
    warnings = [_of_kinds("source", *sources), _of_kinds("level", *levels), _of_lengths(*lengths)]
    return Selection(
        len(groups),
        len(chosen),
        distance(*sources),
        distance(*levels),
        means[0],
        means[1],
        tuple(_share(name, *levels) for name in sorted(levels[0])),
        tuple(warning for warning in warnings if warning),
    )


def _shares(names: Sequence[tuple[str, ...]]) -> Counter[str]:
    return Counter(" ".join(name) for name in names)


def _share(name: str, offered: Mapping[str, int], trained: Mapping[str, int]) -> KindShare:
    return KindShare(name, offered.get(name, 0), trained.get(name, 0), _part(offered, name), _part(trained, name))


def _part(counts: Mapping[str, int], name: str) -> float:
    return counts.get(name, 0) / max(sum(counts.values()), 1)


def distance(offered: Mapping[str, int], trained: Mapping[str, int]) -> float:
    """Total variation; 0 where nothing was trained yet."""
    if not trained:
        return 0.0
    return sum(abs(_part(offered, name) - _part(trained, name)) for name in offered) / 2


def _of_kinds(what: str, offered: Counter[str], trained: Counter[str]) -> str:
    """A warning when the distance is large and a chi-square test of trained against left out rules out chance."""
    far = distance(offered, trained)
    if far <= _LARGE or not is_beyond_chance(offered, trained):
        return ""
    name = max(offered, key=lambda name: abs(_part(offered, name) - _part(trained, name)))
    return (
        f"trained tasks differ from offered ones by {what}: {far:.0%} of them (more than {_LARGE:.0%}, and "
        f"not by chance at 1%); {name} is {_part(offered, name):.0%} of what was offered and "
        f"{_part(trained, name):.0%} of what was trained"
    )


def is_beyond_chance(offered: Counter[str], trained: Counter[str]) -> bool:
    """Chi-square of kinds against trained or not, by Wilson and Hilferty's cube root: 2.326 sigma are 1%."""
    total, chosen = offered.total(), trained.total()
    freedom = len(offered) - 1
    if freedom < 1 or not 0 < chosen < total:
        return False
    statistic = 0.0
    for name, count in offered.items():
        for found, part in ((trained[name], chosen / total), (count - trained[name], 1 - chosen / total)):
            statistic += (found - count * part) ** 2 / (count * part)
    cube = math.cbrt(statistic / freedom)
    return (cube - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom)) > 2.326


def _of_lengths(offered: np.ndarray[Any, Any], trained: np.ndarray[Any, Any]) -> str:
    """A warning when mean lengths are more than a tenth and 2.576 standard errors apart."""
    if len(offered) < 2 or len(trained) < 2 or not offered.mean():
        return ""
    change = float(trained.mean() / offered.mean() - 1)
    error = math.sqrt(offered.var(ddof=1) / len(offered) + trained.var(ddof=1) / len(trained))
    if abs(change) <= _LARGE_LENGTH or abs(trained.mean() - offered.mean()) <= _SIGMAS * error:
        return ""
    return (
        f"trained rollouts are {abs(change):.0%} {'longer' if change > 0 else 'shorter'} than offered ones: "
        f"{trained.mean():.0f} and {offered.mean():.0f} tokens (more than {_LARGE_LENGTH:.0%} and {_SIGMAS} standard "
        "errors apart)"
    )
