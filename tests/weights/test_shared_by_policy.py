"""Several adapters over one copy of the weights are several policies, each with its trainer and its engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.backends import Completion, WeightVersion
from strop.errors import DeliveryError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.wrappers.per_policy import EnginePerPolicy
from strop.models.model import unadapted
from strop.roles import Engine
from strop.training.losses.likelihood import Likelihood
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.training.trainers.trainer_per_policy import TrainerPerPolicy
from strop.types import Group, Message, Sampling, Turn
from strop.weights.channels.memory import Memory
from tests.tiny_models import save_tiny_model
from tests.training.tiny import make_rollout

POLICIES = ("solver", "critic")
PROMPT = np.array([3, 5, 7, 11])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model"), "llama", head_dim=16, eos_token_id=None)


def trainers(*ranks: int) -> tuple[TorchTrainer, ...]:
    return tuple(TorchTrainer(learning_rate=3e-3, lora=rank, fused="on") for rank in ranks)


def engine() -> PagedEngine:
    return PagedEngine(rows=2, device="cpu", dtype="float32", steps=3)


async def said(engine: Engine, policy_name: str) -> Completion:
    return await engine.sample(PROMPT, Sampling(max_tokens=12, policy_name=policy_name), 0)


def group_of(written: Completion, policy_name: str) -> Group:
    turn = Turn(
        PROMPT,
        written.tokens,
        written.logprobs,
        written.versions,
        Message("assistant", ""),
        Sampling(policy_name=policy_name),
    )
    rollout = make_rollout("0", [turn])
    return Group(0, rollout.task, [rollout])


def memories(model: object) -> set[int]:
    return {each.untyped_storage().data_ptr() for each in unadapted(model).values()}


def test_two_policies_read_one_copy_and_move_apart(folder: Path) -> None:
    each, engines, channel = trainers(4, 4), (engine(), engine()), Memory()
    trainer, together = TrainerPerPolicy(POLICIES, each), EnginePerPolicy(POLICIES, engines)
    trainer.open(folder, 0)
    channel.connect(trainer, [together])
    together.open(folder)
    models = [one._opened.model for one in each if one._opened is not None]
    assert len({id(model) for model in models}) == 2 and [e._model for e in engines] == models
    assert memories(models[0]) == memories(models[1])

    async def everything() -> None:
        first = await channel.publish(0)
        before = [await said(together, policy_name) for policy_name in POLICIES]
        assert np.array_equal(before[0].tokens, before[1].tokens)
        batches = pack([group_of(before[1], "critic")], TokenMean(), 0, 100)
        trainer.step(batches, Objective((Likelihood(),)))
        second = await channel.publish(1)
        assert first.fingerprint != second.fingerprint
        after = [await said(together, policy_name) for policy_name in POLICIES]
        np.testing.assert_array_equal(after[0].logprobs, before[0].logprobs)
        assert not np.allclose(after[1].logprobs, before[1].logprobs, atol=1e-3)
        for policy_name, written in zip(POLICIES, after, strict=True):
            scored = pack([group_of(written, policy_name)], TokenMean(), 1, 100)
            trainer.annotate(scored, frozenset({Logprobs("proximal")}))
            ours = scored[0].logprobs["proximal"][scored[0].trainable]
            torch.testing.assert_close(ours, torch.from_numpy(written.logprobs), rtol=0, atol=1e-5)
        name = "critic/" + next(iter(engines[1]._weights))
        bent = {**second.location, name: second.location[name] + 1}
        answer = await together.load(WeightVersion(2, second.fingerprint, bent))
        assert answer != second.fingerprint
        next(iter(unadapted(models[0]).values())).add_(1)
        with pytest.raises(DeliveryError, match="'solver'"):
            await channel.publish(4)

    asyncio.run(everything())


def test_policies_that_differ_have_weights_of_their_own(folder: Path) -> None:
    """Another rank, or an engine of another kind: nothing is shared in part."""
    each = trainers(4, 2)
    trainer = TrainerPerPolicy(POLICIES, each)
    trainer.open(folder, 0)
    assert each[1].borrowed is None
    together = EnginePerPolicy(POLICIES, (engine(), TorchEngine(rows=2)))
    channel = Memory()
    channel.connect(trainer, [together])
    together.open(folder)
    version = asyncio.run(channel.publish(0))
    assert version.location.keys() == trainer.weights().keys()
