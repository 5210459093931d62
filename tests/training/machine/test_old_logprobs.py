"""Old logprobs from kept weights, and what else a trainer fills in, on a tiny random model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.errors import CheckpointError, ConfigurationError
from strop.recipes.objective.missing_old_logits import MismatchMask
from strop.recipes.objective.vcpo import MinimumVariance
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.reinforce import Reinforce
from strop.training.machine.old_logprobs import Snapshots
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.step_scales.effective_sample_size import EffectiveSampleSize
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Rollout
from tests.training.tiny import opened, random_groups, save_llama


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("llama"))


def batches_at(version: int, groups: list[Group] | None = None) -> list[Batch]:
    return pack(random_groups() if groups is None else groups, TokenMean(), version, 60)


def proximal(trainer: TorchTrainer, batches: list[Batch]) -> list[Tensor]:
    trainer.annotate(batches, frozenset({Logprobs("proximal")}))
    return [batch.logprobs["proximal"] for batch in batches]


def stamped(versions: list[int], logprobs: Tensor | None = None) -> list[Group]:
    """The random groups with tokens of these versions in turn, as after in-flight updates."""
    groups, at = random_groups(), 0

    def turn_of(turn):  # type: ignore[no-untyped-def]
        nonlocal at
        mine = np.array([versions[(at + i) % len(versions)] for i in range(len(turn.tokens))])
        found = turn.logprobs if logprobs is None else logprobs[at : at + len(turn.tokens)].numpy()
        at += len(turn.tokens)
        return replace(turn, versions=mine, logprobs=found)

    def rollout_of(rollout: Rollout) -> Rollout:
        return replace(rollout, turns=tuple(turn_of(turn) for turn in rollout.turns))

    return [replace(group, rollouts=[rollout_of(t) for t in group.rollouts]) for group in groups]


def test_each_token_is_scored_under_its_own_version(folder: Path) -> None:
    trainer = opened(folder, snapshots=3)
    expected = []
    for version in range(3):
        expected.append(torch.cat(proximal(trainer, batches_at(version))))
        if version < 2:
            trainer.step(batches_at(version), Objective((Likelihood(),)))
    batches = batches_at(2, stamped([0, 1, 2, -1]))
    trainer.annotate(batches, frozenset({Logprobs("old")}))
    old = torch.cat([batch.logprobs["old"] for batch in batches])
    versions, trainable = (torch.cat([getattr(b, name) for b in batches]) for name in ("versions", "trainable"))
    for version in (0, 1, 2):
        mine = trainable & (versions == version)
        torch.testing.assert_close(old[mine], expected[version][mine])
        assert (old[mine] - expected[(version + 1) % 3][mine]).abs().max() > 1e-3  # it matters which
    taught = trainable & (versions == -1)  # a teacher's: under the first weights that sampled for the group
    torch.testing.assert_close(old[taught], expected[0][taught])
    assert not old[~trainable].any()


def test_a_demonstration_is_measured_from_the_weights_of_its_siblings(folder: Path) -> None:
    trainer = opened(folder, snapshots=3)
    expected = []
    for version in range(3):
        expected.append(torch.cat(proximal(trainer, batches_at(version))))
        trainer.step(batches_at(version), Objective((Likelihood(),)))
    groups = stamped([1])
    for group, versions in zip(groups, ([-1, 1, 2], [-1, -1, -1]), strict=False):
        for rollout, version in zip(group.rollouts, versions, strict=False):
            rollout.turns = tuple(replace(turn, versions=np.full(len(turn.tokens), version)) for turn in rollout.turns)
    groups = groups[:2]
    groups[1].rollouts = groups[1].rollouts[:3]  # all of them a teacher's
    batches = pack(groups, TokenMean(), 3, 10)  # siblings are in batches of their own
    assert len(batches) > 3
    trainer.annotate(batches, frozenset({Logprobs("old")}))
    alone = pack(groups, TokenMean(), 3, 10)
    trainer.annotate(alone, frozenset({Logprobs("proximal")}))
    current = torch.cat([batch.logprobs["proximal"] for batch in alone])
    old = torch.cat([batch.logprobs["old"] for batch in batches])
    whole = torch.cat(proximal(opened(folder), batches_at(0)))  # only to know where the first group ends
    assert len(old) < len(whole)
    first = [batch for batch in batches if groups[0].number in batch.group_numbers]
    size = sum(len(batch.tokens) for batch in first)
    taught = torch.cat([batch.trainable & (batch.versions == -1) for batch in batches])
    torch.testing.assert_close(old[:size][taught[:size]], expected[1][:size][taught[:size]])
    torch.testing.assert_close(old[size:][taught[size:]], current[size:][taught[size:]])
    assert (old - current)[:size][taught[:size]].abs().max() > 1e-3


def test_equal_engines_have_no_mismatch_at_any_lag_but_recomputing_says_they_have(folder: Path) -> None:
    trainer = opened(folder, snapshots=3)
    at_first = batches_at(0)
    sampled = torch.cat(proximal(trainer, at_first))[torch.cat([batch.trainable for batch in at_first])]
    for version in range(2):
        trainer.annotate(batches_at(version), frozenset())
        trainer.step(batches_at(version), Objective((Likelihood(),)))
    stale = batches_at(2, stamped([0], sampled))  # sampled by this very engine, two versions ago
    objective = Objective((Clip(anchor="old"),), MismatchMask())
    trainer.annotate(stale, objective.needs | {Logprobs("proximal")})
    recomputed = max(
        float(batch.log_ratio(batch.logprobs["proximal"], batch.behavior_logprobs).abs().max())
        for batch in stale
        if "proximal" in batch.logprobs
    )
    metrics = trainer.step(stale, objective)
    assert metrics["mismatch"] < 1e-6 and metrics["correction"] == pytest.approx(1.0, abs=1e-5)
    assert metrics["staleness"] == pytest.approx(metrics["drift"], rel=1e-4) and metrics["staleness"] > 0.1
    assert recomputed > 1.0


def test_kept_weights_survive_a_checkpoint(folder: Path, tmp_path: Path) -> None:
    trainer = opened(folder, snapshots=2, average_window=2)
    for version in range(2):
        trainer.annotate(batches_at(version), frozenset({Logprobs("old"), Logprobs("averaged")}))
        trainer.step(batches_at(version), Objective((Likelihood(),)))
    trainer.save(tmp_path)
    other = opened(folder, snapshots=2, average_window=2)
    other.resume(tmp_path)
    found = []
    for each in (trainer, other):
        batches = batches_at(2, stamped([1, 2]))
        each.annotate(batches, frozenset({Logprobs("old"), Logprobs("averaged")}))
        found.append([(batch.logprobs["old"], batch.logprobs["averaged"]) for batch in batches])
    for (old, mean), (old_again, mean_again) in zip(*found, strict=True):
        assert old is not None and mean is not None and old_again is not None and mean_again is not None
        assert torch.equal(old, old_again) and torch.equal(mean, mean_again)
        assert not torch.equal(old, mean)
    (tmp_path / "snapshot-1.safetensors").write_bytes(b"cut")
    with pytest.raises(CheckpointError, match="kept weights"):
        other.resume(tmp_path)


def test_a_version_that_is_gone_is_named(folder: Path) -> None:
    trainer = opened(folder, snapshots=2)
    for version in range(3):
        trainer.annotate(batches_at(version, stamped([version])), frozenset())
    with pytest.raises(ConfigurationError, match=r"version 0 are trained at version 2.*1 to 2.*at least 3"):
        trainer.annotate(batches_at(2, stamped([0])), frozenset({Logprobs("old")}))
    with pytest.raises(ConfigurationError, match="set snapshots > 0"):
        opened(folder).annotate(batches_at(0), frozenset({Logprobs("old")}))


def test_snapshots_are_copies_and_the_oldest_goes() -> None:
    snapshots, weight = Snapshots(2), torch.zeros(2)
    for version in range(3):
        weight.fill_(version)
        snapshots.keep(version, {"weight": weight})
    weight.fill_(9)
    assert {version: kept["weight"].tolist() for version, kept in snapshots.weights.items()} == {1: [1, 1], 2: [2, 2]}


def test_the_pull_of_each_rollout_is_that_of_its_summed_score(folder: Path) -> None:
    trainer = opened(folder)
    batches = pack(random_groups(2, 2), TokenMean(), 0, 10_000)
    trainer.annotate(batches, MinimumVariance().needs)
    norms = batches[0].score_norms
    assert norms is not None and norms.shape == (4,)
    for index, rollout in enumerate(t for group in random_groups(2, 2) for t in group.rollouts):
        rollout.set_advantage(-1.0)
        alone = pack([Group(0, rollout.task, [rollout])], TokenMean(), 0, 10_000)
        alone[0].share = torch.ones_like(alone[0].share)
        fresh = opened(folder, clip_norm=None)
        norm = fresh.step(alone, Objective((Reinforce(),)))["grad_norm"]  # of the sum of all its logprobs
        assert float(norms[index]) == pytest.approx(norm**2, rel=1e-4)


@pytest.mark.parametrize("max_tokens", [60, 10_000])
def test_the_step_follows_the_effective_sample_size(folder: Path, max_tokens: int) -> None:
    batches = pack(random_groups(), TokenMean(), 0, max_tokens)
    plain, scaled = opened(folder), opened(folder, step_scale=EffectiveSampleSize())
    totals = torch.cat([
        batch.per_rollout(batch.log_ratio(logprobs, batch.behavior_logprobs))
        for batch, logprobs in zip(batches, proximal(plain, batches), strict=True)
    ]).double()  # fmt: skip
    weights = (totals - totals.max()).exp()
    share = float(weights.sum() ** 2 / (len(weights) * weights.square().sum()))
    metrics = scaled.step(batches, Objective((Reinforce(),)))
    assert metrics["step_scale"] == pytest.approx(share**0.5, rel=1e-4) and metrics["step_scale"] < 0.9
    assert metrics["learning_rate"] == pytest.approx(1e-2 * metrics["step_scale"])
    assert plain.step(batches, Objective((Reinforce(),)))["learning_rate"] == 1e-2  # and the next step is whole again
