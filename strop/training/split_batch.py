"""Split of a packed batch into one part per rank, of about equal token counts; rollouts, or groups, stay whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from strop.training.batch import Batch

_OF_ROLLOUTS = ("groups", "origins", "rewards", "score_norms", "successes")  # [A]; every other tensor is [T]


@dataclass(frozen=True, eq=False)
class BatchPart:
    """Tokens `low` to `high` of a batch; for an empty range `batch` is a placeholder with nothing to train."""

    batch: Batch
    low: int
    high: int


def split(batch: Batch, count: int, scope: str) -> list[BatchPart]:
    """Parts of consecutive rollouts, so that siblings still share the computation of their prompt."""
    sizes = batch.rollouts.bincount().numpy()  # [A]
    ends = np.cumsum(sizes)
    middle = ends - sizes / 2  # [A]
    if scope != "rollout":
        middle = _middle_of_groups(batch.groups.numpy(), ends, sizes)
    owner = np.minimum((middle * count / ends[-1]).astype(np.int64), count - 1)  # [A], ascending
    bounds = np.searchsorted(owner, np.arange(count + 1)).tolist()
    return [_part(batch, low, high, [0, *ends.tolist()]) for low, high in pairwise(bounds)]


def _middle_of_groups(groups: Any, ends: Any, sizes: Any) -> Any:
    """The middle token of each rollout's group: [A]."""
    first, index = np.unique(groups, return_index=True, return_inverse=True)[1:]
    starts = (ends - sizes)[first]
    stops = np.append(starts[1:], ends[-1])
    return ((starts + stops) / 2)[index]


def _part(batch: Batch, low: int, high: int, bounds: Sequence[int]) -> BatchPart:
    """The part with rollouts `low` to `high`."""
    if low < high:
        return BatchPart(_cut(batch, low, high, bounds[low], bounds[high]), bounds[low], bounds[high])
    stand_in = _cut(batch, 0, 1, 0, bounds[1])
    return BatchPart(replace(stand_in, trainable=torch.zeros_like(stand_in.trainable)), 0, 0)


def _cut(batch: Batch, low: int, high: int, start: int, stop: int) -> Batch:
    part = batch.changed(lambda name, each: each[low:high] if name in _OF_ROLLOUTS else each[start:stop])
    present, groups = part.groups.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    return replace(
        part,
        segments=part.segments - part.segments[0],
        rollouts=part.rollouts - part.rollouts[0],
        groups=groups,
        group_numbers=tuple(batch.group_numbers[index] for index in present.tolist()),
        rollout_ids=batch.rollout_ids[low:high],
        task_ids=batch.task_ids[low:high],
    )
