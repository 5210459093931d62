"""Division of a step's groups: rollouts that are compared with each other, and optimizer steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from strop.capabilities import inside
from strop.roles import View
from strop.training.batch import Batch
from strop.training.objective import Objective
from strop.training.pack import check_advantages, pack
from strop.types import Group, Origin, Rollout

if TYPE_CHECKING:
    from strop.run import Run


def comparison_groups(groups: Sequence[Group]) -> list[Group]:
    """Each comparison group of siblings as a group of its own, in the order of first appearance.

    A comparison group without scored rollouts is left out: it has no gradient, and the ledger does not hold it.
    """
    return [
        comparison_group
        for group in groups
        for comparison_group in _comparison_groups(group)
        if comparison_group.scored
    ]


def _comparison_groups(group: Group) -> list[Group]:
    found: dict[str, list[Rollout]] = {}
    for rollout in group.rollouts:
        found.setdefault(rollout.comparison_group, []).append(rollout)
    return [group] if len(found) < 2 else [replace(group, rollouts=rollouts) for rollouts in found.values()]


def optimizer_steps(groups: Sequence[Group], minibatches: int) -> list[list[Group]]:
    """The training batch in `minibatches` parts; groups that are all demonstrations make a last step of their own.

    A batch of demonstrations alone is divided like any other.
    """
    taught = [group for group in groups if is_taught(group)]
    own = [group for group in groups if group not in taught] or list(groups)
    size = -(-len(own) // minibatches)
    parts = [list(own[first : first + size]) for first in range(0, len(own), size)]
    return [*parts, taught] if taught and len(own) < len(groups) else parts


def packed_steps(run: Run, groups: Sequence[Group], objective: Objective, version: int) -> list[list[Batch]]:
    """The batches of every optimizer step, epoch after epoch; each epoch has its own masks where a view is random."""
    check_advantages(run.advantage, groups)
    most, scope, aux = run.trainer.max_tokens, objective.scope, objective.aux
    parts = optimizer_steps(groups, run.minibatches)
    steps = [pack(part, run.reduction, version, most, scope, aux) for part in parts]
    if not any(view.is_random for view in inside(run.trainer, View)):
        return steps * run.epochs
    return [[replace(batch, view=epoch) for batch in batches] for epoch in range(run.epochs) for batches in steps]


def is_taught(group: Group) -> bool:
    """Whether all scored rollouts of the group are demonstrations."""
    return all(rollout.origin is Origin.TEACHER for rollout in group.scored)
