"""Check that tokens were sampled from the weights they claim: the trainer scores some of them again.

Fingerprints prove which weights an engine loaded; this proves what it computed with. A prefix cache that outlived its
version, wrong reported logprobs, or a different forward pass shows here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from strop.capabilities import Multiplies, Typed, inside
from strop.errors import DeliveryError
from strop.roles import Engine, View
from strop.training.batch import AS_SAMPLED, Batch
from strop.training.requirements import Logprobs
from strop.types import Group, Metrics, Origin

if TYPE_CHECKING:
    from strop.run import Run

_NEAR = (0.9, 1.1)  # probability ratios that count as equal
_LIMITS = {"float32": 1e-3, "fp8": 0.01, "bfloat16": 0.1, "float16": 0.1}  # on the mean |difference| of logprobs


def rescored(run: Run, batches: Sequence[Batch], version: int, groups: Sequence[Group]) -> Metrics:
    """Metrics of one batch, if a check is due and the trainer still holds the weights of some of its tokens.

    Call it before the optimizer step. Those weights are the current ones, or any snapshot (`Logprobs("old")`).
    Truncated sampling cannot be checked: the trainer scores the whole distribution. The rollouts of that batch, or of
    the first if none can be checked, keep their ratios for inspection.
    """
    is_due = run.rescore_every > 0 and version % run.rescore_every == 0
    if not (is_due and batches) or run.sampling.temperature == 0 or not _is_real(run.engine):
        return {}
    proving = [] if run.sampling.is_truncated else [batch for batch in batches if bool(scorable(batch).any())]
    batch = (proving or batches)[0]
    current = _scored(run, batch)
    keep_ratios(groups, batch, current)
    return judged(batch, batch.logprobs.get("old", current), scorable(batch), _limit(run)) if proving else {}


def scorable(batch: Batch) -> Tensor:
    """Completion tokens [T] of rollouts that one version, still held, sampled from the first token to the last.

    After an older token of the same context an engine may have kept its keys over a weight update on purpose. GUIDED
    rollouts may have another prompt than they were sampled with, to which the logprobs belong.
    """
    versions = batch.versions.where(batch.trainable, batch.versions.new_full((), -1))
    newest = versions.new_full((batch.num_rollouts,), -1).scatter_reduce(0, batch.rollouts, versions, "amax")  # [A]
    others = batch.per_rollout((versions != batch.on_tokens(newest)).to(torch.float32)) > 0  # [A]
    is_held = newest >= 0 if "old" in batch.logprobs else newest == batch.version
    return batch.trainable & batch.on_tokens(is_held & ~others & ~batch.is_of(Origin.GUIDED))


def _scored(run: Run, batch: Batch) -> Tensor:
    """Logprobs [T] under the current weights, on a copy of the batch, so that no loss sees logprobs it did not need.

    Diffusion completions are read in their unmasking order, whatever view a loss uses.
    """
    if "proximal" in batch.logprobs and not inside(run.trainer, View):
        return batch.logprobs["proximal"]
    again = replace(batch, view=AS_SAMPLED)
    run.trainer.annotate([again], frozenset({Logprobs("proximal")}))
    return again.logprobs["proximal"]


def keep_ratios(groups: Sequence[Group], batch: Batch, logprobs: Tensor) -> None:
    """Record trainer / behavior probability ratios of each token; NaN for tokens without a version."""
    ratios = batch.log_ratio(logprobs, batch.behavior_logprobs).exp()
    ratios = ratios.where(batch.versions >= 0, ratios.new_tensor(torch.nan)).float().cpu()  # [T]
    owners = {rollout.id: rollout for group in groups for rollout in group.scored}
    for place, name in enumerate(batch.rollout_ids):
        owners[name].ratios = ratios[(batch.trainable & (batch.rollouts == place)).cpu()].numpy()  # [N]


def judged(batch: Batch, logprobs: Tensor, sampled: Tensor, limit: float) -> Metrics:
    """Distance of the engine's logprobs from the trainer's at the sampled tokens; above the limit the run stops."""
    difference = (logprobs - batch.behavior_logprobs)[sampled].double()  # [S]
    distance, ratio = difference.abs(), difference.exp()
    mean, largest = float(distance.mean()), float(distance.max())
    outside = float(((ratio < _NEAR[0]) | (ratio > _NEAR[1])).double().mean())
    if not mean <= limit:  # also true for NaN
        raise DeliveryError(
            f"{len(difference)} tokens of {_named(batch.versions[sampled])}, scored again by the trainer, differ from "
            f"the engine's logprobs by {mean:.2g} on average (limit {limit:g}) and by {largest:.2g} at most; "
            f"{outside:.1%} of the ratios are outside [{_NEAR[0]}, {_NEAR[1]}]: the engine computes with other "
            "weights, stale keys or another temperature than it reports"
        )
    return {"rescored_difference": mean, "rescored_difference_max": largest, "rescored_outside": outside}


def _named(versions: Tensor) -> str:
    low, high = int(versions.min()), int(versions.max())
    return f"version {low}" if low == high else f"versions {low} to {high}"


def _is_real(engine: Any) -> bool:
    """Whether the engine and all its parts compute logprobs rather than invent them."""
    return all(part.has_weights for part in inside(engine, Engine))


def _limit(run: Run) -> float:
    """The limit of the lower precision of engine and trainer."""
    kinds = [part.dtype for part in inside((run.engine, run.trainer), Typed)]
    kinds += [part.matmul_precision for part in inside(run.trainer, Multiplies) if part.matmul_precision in _LIMITS]
    return max((_LIMITS.get(kind, 0.1) for kind in kinds), default=_LIMITS["float32"])
