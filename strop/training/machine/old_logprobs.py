"""Old logprobs: each token scored by the trainer under the very weights it was sampled with ("Missing Old Logits",
2605.12070), so that the engine's mismatch and the data's staleness are separate.

A trainer that recomputes logprobs just before its step scores stale tokens under newer weights: the ratio is mismatch
times staleness. Three solutions are exact: (a) keep the weights of every version still in flight, and score each token
under its own: this file; (b) a second model next to the trainer that scores segments as they finish, under the version
that made them; (c) stop generation before each publish and score the partial segments with the weights that are still
current. (a) costs one copy of the weights per version of lag, in main memory, and one forward pass per version in a
batch; it needs no communication with the engines. The prefix of a token is scored under its own version as well: an
engine that keeps its cache over an update mixes versions there, and that difference counts as mismatch.
Papers: missing-old-logits
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from strop.errors import CheckpointError, ConfigurationError
from strop.training.batch import Batch


@dataclass(eq=False)
class Snapshots:
    """Weights of the last `count` versions, by version."""

    count: int
    weights: dict[int, dict[str, Tensor]] = field(default_factory=dict)

    def keep(self, version: int, weights: Mapping[str, Tensor]) -> None:
        """Copy these weights; the oldest version beyond the count is let go."""
        if version not in self.weights:
            self.weights[version] = {name: each.detach().to("cpu", copy=True) for name, each in weights.items()}
        for old in sorted(self.weights)[: -self.count]:
            del self.weights[old]

    def of(self, version: int, now: int) -> dict[str, Tensor]:
        if version not in self.weights:
            kept = f"{min(self.weights)} to {max(self.weights)}" if self.weights else "none"
            raise ConfigurationError(
                f"tokens of version {version} are trained at version {now}, and the weights kept are {kept}: "
                f"set the trainer's snapshots to at least {now - version + 1}"
            )
        return self.weights[version]

    def save(self, folder: Path) -> None:
        """One file per version: groups still in flight after a resume were sampled with them."""
        for version, weights in self.weights.items():
            save_file(weights, folder / f"snapshot-{version}.safetensors")

    def resume(self, folder: Path) -> None:
        try:
            found = {int(path.stem.removeprefix("snapshot-")): path for path in folder.glob("snapshot-*.safetensors")}
            self.weights = {version: load_file(path) for version, path in found.items()}
        except (OSError, ValueError, SafetensorError) as error:
            raise CheckpointError(f"cannot read the kept weights in {folder}: {error}") from error


def fill_old(batches: Sequence[Batch], score: Callable[[int, Batch], Tensor]) -> None:
    """Score every written token under its own version; `score(version, batch)` gives [T], of a version -1 the current.

    A teacher's tokens have no version: those of its siblings' first weights serve, so that a group is measured from one
    policy. Versions are the outer loop, so that each one's weights are loaded once.
    """
    first = _first_versions(batches)
    versions = [_with_siblings(batch, first) for batch in batches]
    for batch in batches:
        batch.fill("old", torch.zeros_like(batch.share))
    written = torch.cat([own[batch.trainable].cpu() for own, batch in zip(versions, batches, strict=True)])
    for version in np.unique(written.numpy()).tolist():
        for own, batch in zip(versions, batches, strict=True):
            mine = batch.trainable & (own == version)  # [T]
            if bool(mine.any()):
                scored = score(version, batch).to(batch.share.dtype)
                batch.fill("old", torch.where(mine, scored, batch.logprobs["old"]))


def _first_versions(batches: Sequence[Batch]) -> dict[int, int]:
    """The oldest weights that sampled for each group, by the group's number."""
    found: dict[int, int] = {}
    for batch in batches:
        sampled = batch.trainable & (batch.versions >= 0)  # [T]
        versions, groups = batch.versions[sampled].tolist(), batch.groups[batch.rollouts[sampled]].tolist()
        for version, group in set(zip(versions, groups, strict=True)):
            number = batch.group_numbers[group]
            found[number] = min(version, found.get(number, version))
    return found


def _with_siblings(batch: Batch, first: Mapping[int, int]) -> Tensor:
    """The version to score each token under: [T]."""
    of_group = batch.versions.new_tensor([first.get(number, -1) for number in batch.group_numbers])  # [G]
    return torch.where(batch.versions < 0, of_group[batch.groups][batch.rollouts], batch.versions)
