"""Moving reference: a trainer wrapper that resets the reference to the policy, or moves it as a slow average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from strop.backends import Objective
from strop.errors import CheckpointError, ConfigurationError
from strop.roles import Trainer
from strop.training.batch import Batch
from strop.training.requirements import LOGPROBS, REFERENCE_LOGPROBS, Logprobs, Need, PolicyStatistic
from strop.types import Group, Metrics

_FILE = "moving_reference.safetensors"
_REFERENCE = Logprobs("reference")


@dataclass
class MovingReference(Trainer):
    """Every `every` versions: reference <- keep * reference + (1 - keep) * policy; keep 0 is a reset.

    `reference` is a trainer of the same kind that never steps: it only holds the reference weights.
    """

    inner: Trainer
    reference: Trainer
    every: int = 50  # versions between two updates
    keep: float = 0.0  # weight of the old reference in each update; 0 resets it
    times: int = 0  # updates at most; 0: no limit

    _moved: int = field(default=0, init=False, repr=False, compare=False)  # version of the last update

    def __post_init__(self) -> None:
        if self.every < 1 or not 0 <= self.keep < 1 or self.times < 0:
            raise ConfigurationError(
                f"MovingReference needs every >= 1, 0 <= keep < 1 and times >= 0, got {self.every}, {self.keep} and "
                f"{self.times}"
            )

    @property
    def max_tokens(self) -> int:
        return self.inner.max_tokens

    def open(self, model: Path, seed: int) -> None:
        self.inner.open(model, seed)
        self.reference.open(model, seed)
        self._moved = 0

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        """Statistics of the reference use its weights before the next update."""
        if REFERENCE_LOGPROBS in needs:
            self.reference.policy_statistic(groups, frozenset({LOGPROBS}))
            for rollout in (
                each for group in groups for each in group.scored if LOGPROBS.name in each.policy_statistics
            ):
                rollout.policy_statistics[REFERENCE_LOGPROBS.name] = rollout.policy_statistics.pop(LOGPROBS.name)
        if own := needs - {REFERENCE_LOGPROBS}:
            self.inner.policy_statistic(groups, own)

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        self.inner.annotate(batches, needs - {_REFERENCE})
        if batches:
            self._follow(batches[0].version)
        if _REFERENCE not in needs or not batches:
            return
        again = [replace(batch) for batch in batches]
        self.reference.annotate(again, frozenset({Logprobs("proximal")}))
        for batch, scored in zip(batches, again, strict=True):
            batch.fill("reference", scored.logprobs["proximal"])

    def _follow(self, version: int) -> None:
        """Update once per due version."""
        if version % self.every or version <= self._moved or 0 < self.times * self.every < version:
            return
        self._moved = version
        with torch.no_grad():
            for name, weight in self.reference.weights().items():
                weight.lerp_(self.inner.weights()[name].to(weight), 1 - self.keep)

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        return self.inner.step(batches, objective) | {"reference_version": float(self._moved)}

    def weights(self) -> dict[str, Tensor]:
        return self.inner.weights()

    def save(self, folder: Path) -> None:
        self.inner.save(folder)
        held = {name: weight.detach().cpu().contiguous() for name, weight in self.reference.weights().items()}
        save_file(held, folder / _FILE, {"version": str(self._moved)})

    def resume(self, folder: Path) -> None:
        self.inner.resume(folder)
        try:
            held = load_file(folder / _FILE)
            self._moved = _version(folder / _FILE)
        except (OSError, SafetensorError, ValueError) as error:
            raise CheckpointError(f"cannot read the reference in {folder}: {error}") from error
        with torch.no_grad():
            for name, weight in self.reference.weights().items():
                weight.copy_(held[name])


def _version(path: Path) -> int:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return int(file.metadata()["version"])
