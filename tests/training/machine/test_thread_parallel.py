"""Micro-batches that are computed at once: the bits of one after the other, with any number of threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import Tensor

from strop.errors import NumericsError
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.machine.thread_parallel import AtOnce
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.trainers.torch import TorchTrainer
from strop.types import Metrics
from tests.training.tiny import random_groups, save_llama

OBJECTIVE = Objective((Clip(), Kl(weight=0.1)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("llama"), is_tied=True)


def batches() -> list[Batch]:
    """One of more than 1024 tokens: two parts, and not three."""
    (batch,) = pack(random_groups(14, 8), TokenMean(), 0, 10_000)
    assert 1024 <= len(batch.tokens) < 1536
    return [batch]


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


def trained(folder: Path, threads: int) -> tuple[list[Metrics], dict[str, Tensor]]:
    """Two steps, of which the second begins where the first ended; without clipping, or small gradients count much."""
    trainer = TorchTrainer(learning_rate=1e-3, clip_norm=None)
    trainer.open(folder, 0)
    with on_threads(threads):
        told = []
        for _ in range(2):
            packed = batches()
            trainer.annotate(packed, OBJECTIVE.needs)
            told.append(trainer.step(packed, OBJECTIVE))
    return told, trainer.weights()


def test_two_threads_with_a_part_each_find_what_one_finds_and_the_same_bits_every_time(folder: Path) -> None:
    told, weights = trained(folder, 1)
    found, at_once = trained(folder, 2)
    again, as_before = trained(folder, 2)
    assert found == [pytest.approx(each, rel=1e-4, abs=1e-6) for each in told]
    assert all(torch.allclose(weights[name], at_once[name], atol=2e-5) for name in weights)
    assert again == found and all(torch.equal(as_before[name], at_once[name]) for name in weights)


def test_parts_are_taken_by_several_threads_and_come_back_in_order() -> None:
    (batch,) = batches()
    both = threading.Barrier(2, timeout=10)  # which nobody passes alone

    def met(part: Batch) -> Tensor:
        both.wait()
        return part.tokens * torch.get_num_threads()

    with on_threads(5):
        (found,) = AtOnce(is_wanted=True).on_tokens([batch], met)
    assert found.tolist() == (batch.tokens * 2).tolist()  # of five threads, two for each of two parts


def test_no_group_is_in_two_parts_where_a_loss_compares_siblings() -> None:
    (batch,) = batches()
    with on_threads(2):
        by_group, by_rollout = (AtOnce(is_wanted=True).parts(batch, scope) for scope in ("group", "rollout"))
        alone = AtOnce(is_wanted=False).parts(batch, "group")
    assert len(by_group) == len(by_rollout) == 2 and alone == [batch]
    assert not set(by_group[0].group_numbers) & set(by_group[1].group_numbers)
    for parts in (by_group, by_rollout):
        assert torch.equal(torch.cat([part.tokens for part in parts]), batch.tokens)


def test_a_broken_part_is_named_though_another_was_computed_beside_it(folder: Path) -> None:
    trainer = TorchTrainer()
    trainer.open(folder, 0)
    (batch,) = batches()
    last = batch.rollouts == batch.num_rollouts - 1
    batch.advantages[last & batch.trainable] = float("nan")
    with on_threads(2), pytest.raises(NumericsError, match="from 1 of 2 batches") as refused:
        trainer.step([batch], Objective((Clip(),)))
    assert batch.task_ids[-1] in str(refused.value) and batch.task_ids[0] not in str(refused.value)
