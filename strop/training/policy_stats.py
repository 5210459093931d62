"""What the policy thought while it wrote, noted on each attempt before anybody gives credit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor

from strop.capabilities import inside
from strop.roles import Advantage, ValueModel
from strop.training.batch import Batch
from strop.training.machine.logprobs import PolicyOutput
from strop.training.pack import closed, pack
from strop.training.requirements import HIDDEN_AFTER, PROMPT_HIDDEN, Note
from strop.types import Group, Trajectory

if TYPE_CHECKING:
    from strop.run import Run

Wanted: TypeAlias = Callable[[PolicyOutput], Tensor]
Look: TypeAlias = Callable[[str, Batch, Sequence[Wanted]], list[Tensor]]  # by the name of a policy; one pass for all


def take_notes(groups: Sequence[Group], needs: frozenset[Note], look: Look, max_tokens: int) -> None:
    """Fill `notes` of every attempt that counts and wrote something."""
    attempts = {attempt.id: attempt for group in groups for attempt in group.scored}
    policies = sorted({note.policy for note in needs})
    if HIDDEN_AFTER in needs:  # nobody computes the state of a context's last token, unless one more stands behind it
        groups = [replace(group, trajectories=[closed(attempt) for attempt in group.scored]) for group in groups]
    for batch in pack(groups, None, 0, max_tokens):
        owners = [attempts[each] for each in batch.attempt_ids]
        for policy in policies:
            asked = [note for note in sorted(needs, key=str) if note.policy == policy]
            for note, values in zip(asked, look(policy, batch, [note.look for note in asked]), strict=True):
                where = _first_prompts(batch) if note == PROMPT_HIDDEN else batch.trainable
                _hand_out(note.name, values, where, batch, owners)


def _hand_out(name: str, values: Tensor, where: Tensor, batch: Batch, owners: Sequence[Trajectory]) -> None:
    """Give each attempt its part of the [T, ...] values."""
    counts = torch.zeros(batch.num_attempts, dtype=torch.int64).index_add(0, batch.attempts, where.to(torch.int64))
    array, ends = values[where].numpy(), np.cumsum(counts.numpy()).tolist()
    for owner, (low, high) in zip(owners, pairwise([0, *ends]), strict=True):
        owner.notes[name] = array[low:high]


def _first_prompts(batch: Batch) -> Tensor:
    """What each attempt read before it first wrote: [T] bool."""
    written = batch.trainable.to(torch.int64).cumsum(0)
    sizes = batch.attempts.bincount()
    before = (written - batch.trainable.to(torch.int64))[sizes.cumsum(0) - sizes]  # [A], written by those before it
    return (written == batch.on_tokens(before)) & ~batch.trainable


def notes_needed(run: Run) -> frozenset[Note]:
    """What advantage and value model want to know of the policy before they judge."""
    asked = [part.needs for part in inside(run.values, ValueModel)]
    return frozenset[Note]().union(*asked, *(part.needs for part in inside(run.advantage, Advantage)))
