"""What the policy thought while it wrote, noted on each attempt before anybody gives credit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor

from strop.abilities import inside
from strop.errors import ConfigurationError, nearest
from strop.roles import Advantage, ValueModel
from strop.train.batch import Batch
from strop.train.machine.logprobs import PolicyOutput
from strop.train.pack import closed, pack
from strop.types import Group, Trajectory

if TYPE_CHECKING:
    from strop.run import Run

Wanted: TypeAlias = Callable[[PolicyOutput], Tensor]
Look: TypeAlias = Callable[[str, Batch, Sequence[Wanted]], list[Tensor]]  # by the name of a policy; one pass for all

_PROMPT, _AFTER = "prompt_hidden", "hidden_after"
_NOTED: dict[str, tuple[str, Wanted]] = {
    "entropy": ("proximal", lambda output: output.entropy),
    "logprobs": ("proximal", lambda output: output.logprobs),
    "hidden": ("proximal", lambda output: output.states),
    "reference_logprobs": ("reference", lambda output: output.logprobs),
    _PROMPT: ("proximal", lambda output: output.hidden),
    _AFTER: ("proximal", lambda output: output.hidden),
}
NOTES = tuple(_NOTED)


def take_notes(groups: Sequence[Group], needs: frozenset[str], look: Look, max_tokens: int) -> None:
    """Fill `notes` of every attempt that counts and wrote something."""
    if unknown := sorted(needs - set(NOTES)):
        raise ConfigurationError(f"no trainer notes {unknown[0]!r}: {nearest(unknown[0], NOTES)}")
    attempts = {attempt.id: attempt for group in groups for attempt in group.scored}
    policies = sorted({_NOTED[need][0] for need in needs})
    if _AFTER in needs:  # nobody computes the state of a context's last token, unless one more stands behind it
        groups = [replace(group, trajectories=[closed(attempt) for attempt in group.scored]) for group in groups]
    for batch in pack(groups, None, 0, max_tokens):
        owners = [attempts[each] for each in batch.attempt_ids]
        for policy in policies:
            asked = [need for need in sorted(needs) if _NOTED[need][0] == policy]
            for need, values in zip(asked, look(policy, batch, [_NOTED[need][1] for need in asked]), strict=True):
                where = _first_prompts(batch) if need == _PROMPT else batch.trainable
                _hand_out(need, values, where, batch, owners)


def _hand_out(need: str, values: Tensor, where: Tensor, batch: Batch, owners: Sequence[Trajectory]) -> None:
    """Give each attempt its part of the [T, ...] values."""
    counts = torch.zeros(batch.num_attempts, dtype=torch.int64).index_add(0, batch.attempts, where.to(torch.int64))
    array, ends = values[where].numpy(), np.cumsum(counts.numpy()).tolist()
    for owner, (low, high) in zip(owners, pairwise([0, *ends]), strict=True):
        owner.notes[need] = array[low:high]


def _first_prompts(batch: Batch) -> Tensor:
    """What each attempt read before it first wrote: [T] bool."""
    written = batch.trainable.to(torch.int64).cumsum(0)
    sizes = batch.attempts.bincount()
    before = (written - batch.trainable.to(torch.int64))[sizes.cumsum(0) - sizes]  # [A], written by those before it
    return (written == batch.on_tokens(before)) & ~batch.trainable


def notes_needed(run: Run) -> frozenset[str]:
    """What advantage and value model want to know of the policy before they judge."""
    asked = [part.needs for part in inside(run.values, ValueModel)]
    return frozenset[str]().union(*asked, *(part.needs for part in inside(run.advantage, Advantage)))
