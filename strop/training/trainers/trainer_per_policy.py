"""Trainer of several policies at once: each policy name of a team has its own weights, optimizer and reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from strop.backends import Objective
from strop.capabilities import Borrows, Lends
from strop.errors import ConfigurationError
from strop.roles import Trainer
from strop.storage.checkpoint import POLICIES
from strop.training.batch import Batch
from strop.training.requirements import Logprobs, Need, PolicyStatistic
from strop.types import Group, Metrics
from strop.weights.per_policy import SharedByPolicy, check_policies, place_of, together
from strop.weights.shared_base_weights import Shared

_MEANT = ("learning_rate", "step_scale")  # metrics that do not add up over policy names


@dataclass
class TrainerPerPolicy(Trainer):
    """A step is one optimizer step of every policy name with completion tokens, on its own tokens alone.

    The loss is the sum over policy names: shares stay those of the whole batch. The first policy name's model is the
    checkpoint's; the others are in subfolders of it.
    """

    policy_names: tuple[str, ...]  # a turn of any other name belongs to the first one
    trainers: tuple[Trainer, ...]  # one for each name

    fills: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference"), Logprobs("proximal"), Logprobs("old")})

    def __post_init__(self) -> None:
        check_policies(self.policy_names, len(self.trainers), "trainers")

    @property
    def max_tokens(self) -> int:
        return min(trainer.max_tokens for trainer in self.trainers)

    def open(self, model: Path, seed: int) -> None:
        """Open every model; with adapters, all policy names share the first one's base weights."""
        first, *others = self.trainers
        first.open(model, seed)
        shared = first.lend() if isinstance(first, Lends) else None
        for trainer in others:
            if isinstance(trainer, Borrows):
                trainer.borrow(shared)
            trainer.open(model, seed)

    def lend(self) -> SharedByPolicy | None:
        parts = [trainer.lend() if isinstance(trainer, Lends) else None for trainer in self.trainers]
        found = {
            policy_name: shared
            for policy_name, shared in zip(self.policy_names, parts, strict=True)
            if isinstance(shared, Shared)
        }
        return SharedByPolicy(found) if len(found) == len(self.policy_names) else None

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        """Record for each token the statistic of the policy that sampled it."""
        for place, trainer in enumerate(self.trainers):
            copies = [
                replace(group, rollouts=[replace(a, policy_statistics={}) for a in group.scored]) for group in groups
            ]
            trainer.policy_statistic(copies, needs)
            for group, copy in zip(groups, copies, strict=True):
                for rollout, noted in zip(group.scored, copy.scored, strict=True):
                    spoken = [place_of(turn.sampling.policy_name, self.policy_names) for turn in rollout.turns]
                    own = np.repeat(spoken, [len(turn.tokens) for turn in rollout.turns]) == place  # [N]
                    for name, values in noted.policy_statistics.items():
                        _check_rows(name, len(values), len(own))
                        rollout.policy_statistics[name] = _merged(rollout.policy_statistics.get(name), values, own)

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        if unknown := needs - self.fills:
            raise ConfigurationError(f"TrainerPerPolicy fills logprobs of reference, proximal and old, not {unknown}")
        for trainer, parts in zip(self.trainers, self._parts(batches), strict=True):
            trainer.annotate([part for _, part in parts], needs)
            for batch, part in parts:
                for policy, logprobs in part.logprobs.items():
                    others = batch.logprobs.get(policy, torch.zeros_like(logprobs))
                    batch.fill(policy, torch.where(part.trainable, logprobs, others))

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        rows: dict[str, Metrics] = {}
        for policy_name, trainer, parts in zip(self.policy_names, self.trainers, self._parts(batches), strict=True):
            if parts:
                rows[policy_name] = trainer.step([part for _, part in parts], objective)
        if not rows:
            raise ConfigurationError(
                "a step needs at least 1 completion token, got 0: every rollout failed or was empty"
            )
        names = dict.fromkeys(name for row in rows.values() for name in row)
        metrics = {name: _together(name, [row[name] for row in rows.values() if name in row]) for name in names}
        return metrics | {
            f"grad_norm/{policy_name}": row["grad_norm"] for policy_name, row in rows.items() if "grad_norm" in row
        }

    def _parts(self, batches: Sequence[Batch]) -> list[list[tuple[Batch, Batch]]]:
        """For each policy name, batches in which only its tokens are trainable; empty ones are left out."""
        found: list[list[tuple[Batch, Batch]]] = [[] for _ in self.policy_names]
        for batch in batches:
            spoken = torch.zeros_like(batch.tokens) if batch.policy_indices is None else batch.policy_indices  # [T]
            places = spoken.new_tensor([place_of(name, self.policy_names) for name in batch.policy_names])[spoken]
            for place, parts in enumerate(found):
                own = batch.trainable & (places == place)  # [T]
                if bool(own.any()):
                    parts.append((batch, replace(batch, trainable=own)))
        return found

    def weights(self) -> dict[str, Tensor]:
        return together(
            {policy_name: each.weights() for policy_name, each in zip(self.policy_names, self.trainers, strict=True)}
        )

    def save(self, folder: Path) -> None:
        for trainer, place in zip(self.trainers, self._folders(folder), strict=True):
            place.mkdir(parents=True, exist_ok=True)
            trainer.save(place)

    def resume(self, folder: Path) -> None:
        for trainer, place in zip(self.trainers, self._folders(folder), strict=True):
            trainer.resume(place)

    def _folders(self, folder: Path) -> list[Path]:
        return [folder, *(folder / POLICIES / policy_name for policy_name in self.policy_names[1:])]


def _check_rows(name: str, rows: int, tokens: int) -> None:
    if rows != tokens:
        raise ConfigurationError(
            f"TrainerPerPolicy needs one row of a policy statistic per completion token: {name} has {rows} for {tokens}"
        )


def _merged(before: np.ndarray | None, values: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Rows [N, ...] of one policy name merged with those of the others."""
    found = np.zeros_like(values) if before is None else before.copy()
    found[own] = values[own]
    return found


def _together(name: str, values: Sequence[float]) -> float:
    """A metric over all policy names: shares add up to 1 over them, so weighted metrics are summed."""
    if name == "grad_norm":
        return float(np.sqrt(np.square(values).sum()))
    return max(values) if name in _MEANT else float(sum(values))
