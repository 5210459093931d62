"""One copy of the weights for a trainer of adapters and its engine: the same logprobs, small publishes, and proof."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.backends import Completion, WeightVersion
from strop.errors import DeliveryError
from strop.generate.engines.cpu.torch_engine import TorchEngine, copy_weights
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.paged.paged_llama import PagedLlama
from strop.generate.engines.wrappers.chunked import Told
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.kernels.decode import Plain, TokenPlaces
from strop.models.layers.attention import Packed
from strop.models.model import load_model, unadapted
from strop.recipes.distill.octothinker import StableThenDecay
from strop.training.losses.likelihood import Likelihood
from strop.training.machine.llama import llama_forward
from strop.training.machine.lora import add_adapters, learning
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, IntArray, Message, Sampling, Turn
from strop.weights.channels.memory import Memory
from tests.tiny_models import save_tiny_model
from tests.training.tiny import make_rollout


def opened(folder: Path) -> tuple[TorchTrainer, PagedEngine, Memory]:
    trainer, channel = TorchTrainer(learning_rate=3e-3, lora=4, fused="on"), Memory()
    engine = PagedEngine(rows=8, device="cpu", dtype="float32", steps=3)
    trainer.open(folder, 0)
    channel.connect(trainer, [engine])
    engine.open(folder)
    return trainer, engine, channel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model"), "qwen2", head_dim=16, eos_token_id=None)


def prompts() -> list[IntArray]:
    stream = np.random.default_rng(0)
    return [stream.integers(2, 20, length) for length in (3, 17, 9, 20)]


async def written(engine: PagedEngine) -> list[Completion]:
    asked = enumerate(prompts())
    return list(await asyncio.gather(*(engine.sample(each, Sampling(max_tokens=20), key) for key, each in asked)))


def groups_of(found: list[Completion]) -> list[Group]:
    groups = []
    for number, (prompt, each) in enumerate(zip(prompts(), found, strict=True)):
        turn = Turn(prompt, each.tokens, each.logprobs, each.versions, Message("assistant", ""))
        rollout = make_rollout(f"{number}", [turn], f"task-{number}")
        groups.append(Group(number, rollout.task, [rollout]))
    return groups


def largest_gap(trainer: TorchTrainer, found: list[Completion]) -> float:
    batches = pack(groups_of(found), TokenMean(), 0, 500)
    trainer.annotate(batches, frozenset({Logprobs("proximal")}))
    gaps = [(each.logprobs["proximal"] - each.behavior_logprobs)[each.trainable].abs().max() for each in batches]
    return float(max(gaps))


def base_of(trainer: TorchTrainer) -> dict[str, Tensor]:
    assert trainer._opened is not None
    return unadapted(trainer._opened.model)


def test_engine_and_trainer_agree_over_one_copy(folder: Path) -> None:
    trainer, engine, channel = opened(folder)
    held = {each.untyped_storage().data_ptr() for each in unadapted(engine._model).values()}
    assert held == {each.untyped_storage().data_ptr() for each in base_of(trainer).values()}

    async def everything() -> tuple[list[WeightVersion], list[Completion], list[Completion]]:
        versions = [await channel.publish(0)]
        first = await written(engine)
        batches = pack(groups_of(first), TokenMean(), 0, 500)
        for _ in range(3):
            trainer.step(batches, Objective((Likelihood(),)))
        stale = largest_gap(trainer, first)
        versions.append(await channel.publish(1))
        second = await written(engine)
        assert stale > 1e-2 > 1e-5 > largest_gap(trainer, second)  # the published adapters act, as the trainer's do
        return versions, first, second

    versions, first, second = asyncio.run(everything())
    assert versions[0].fingerprint != versions[1].fingerprint
    assert all((one.versions == 0).all() and (two.versions == 1).all() for one, two in zip(first, second, strict=True))
    # adapters alone travel: 4 (rows + columns) numbers for each of 7 matrices of 2 layers
    assert trainer._opened is not None
    sent = sum(each.numel() for each in versions[1].location.values())
    assert sent == sum(each.numel() for each in trainer._opened.optimizer.parameters.values())
    assert len(versions[1].location) == 2 * 7 * trainer._opened.model.config.num_hidden_layers


def test_the_engine_samples_as_from_merged_weights(folder: Path) -> None:
    trainer, engine, channel = opened(folder)
    merged = TorchEngine(rows=8)
    merged.open(folder)

    async def everything() -> tuple[list[Completion], list[Completion]]:
        await channel.publish(0)
        trainer.step(pack(groups_of(await written(engine)), TokenMean(), 0, 500), Objective((Likelihood(),)))
        await channel.publish(1)
        await merged.load(WeightVersion(1, "", trainer.weights()))
        return await written(engine), await written(merged)  # type: ignore[arg-type]

    for one, other in zip(*asyncio.run(everything()), strict=True):
        assert np.array_equal(one.tokens, other.tokens)
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_in_half_precision_both_have_the_same_bits(family: str, tmp_path: Path) -> None:
    """Tokens that see only themselves, so that attention has no sum whose order could differ on a CPU."""
    model = load_model(save_tiny_model(tmp_path, family, head_dim=16), torch.bfloat16)
    add_adapters(model, 4, 0)
    generator = torch.Generator().manual_seed(0)
    for each in learning(model).values():
        each.data = torch.randn(each.shape, generator=generator) * 0.2
    quick, llama = llama_forward(model, torch.bfloat16, says_why_not=True), PagedLlama(model, Plain(), 64)
    assert quick is not None
    count = 13
    tokens, first = torch.arange(count), torch.zeros(count, dtype=torch.int64)
    where = TokenPlaces(tokens.int(), first.int(), torch.arange(1, count + 1).int().unsqueeze(1))
    states = []
    with torch.no_grad():
        for adapters in ({}, learning(model)):
            copy_weights(adapters, llama.adapters(model) if adapters else {})
            states.append(llama.states(tokens, where, llama.cache(count + 1)))
        trained = quick.hidden_states(tokens, first, Packed([1] * count, "cpu"))
    assert torch.equal(states[1], trained) and not torch.equal(states[0], trained)


def test_what_is_held_is_proven(folder: Path) -> None:
    """Another weight, another adapter, or weights where adapters belong stop the run; so does what was cut off."""
    trainer, engine, channel = opened(folder)
    asyncio.run(channel.publish(0))
    name, part = next(iter(engine._weights.items()))
    version = asyncio.run(channel.publish(1))
    assert asyncio.run(engine.load(version)) == version.fingerprint
    bent = {**version.location, name: version.location[name] * (1 + 2**-23)}
    assert asyncio.run(engine.load(WeightVersion(2, version.fingerprint, bent))) != version.fingerprint
    assert torch.equal(part, bent[name])
    with pytest.raises(DeliveryError, match="do not fit"):
        asyncio.run(engine.load(WeightVersion(2, "", trainer.weights())))
    weight = base_of(trainer)["model.norm.weight"]
    before = float(weight[3])
    with torch.no_grad():
        weight[3] *= 1 + 2**-23
    with pytest.raises(DeliveryError, match=r"PagedEngine\) samples from weights .* after step 3"):
        asyncio.run(channel.publish(3))
    with torch.no_grad():
        weight[3] = before
    asyncio.run(channel.publish(4))


def test_wrappers_pass_them_on_and_two_engines_have_their_own(folder: Path) -> None:
    """A schedule around the trainer and a temperature around the engine change nothing; a second engine does."""
    trainer = StableThenDecay(TorchTrainer(lora=4, fused="on"), decay=2)
    engines = [PagedEngine(rows=2, device="cpu", dtype="float32") for _ in range(2)]
    trainer.open(folder, 0)
    for engine, is_shared in ((Told(engines[0]), True), (WithReference(*engines), False)):
        engines[0]._shared = engines[0]._model = None
        channel = Memory()
        channel.connect(trainer, [engine])
        engine.open(folder)
        version = asyncio.run(channel.publish(0))
        assert (version.location.keys() == trainer.weights().keys()) != is_shared


def test_an_engine_that_cannot_read_them_has_its_own(folder: Path) -> None:
    """One in another type, and one that is open already: they get whole weights, with adapters added."""
    trainer = TorchTrainer(lora=4, fused="on")
    trainer.open(folder, 0)
    for dtype in ("bfloat16", "float32"):
        engine, channel = PagedEngine(rows=2, device="cpu", dtype=dtype), Memory()
        if dtype == "float32":
            engine.open(folder)
        channel.connect(trainer, [engine])
        if dtype == "bfloat16":
            engine.open(folder)
        version = asyncio.run(channel.publish(0))
        assert version.location.keys() == trainer.weights().keys()


def test_a_resumed_trainer_still_lends_the_same_weights(folder: Path, tmp_path: Path) -> None:
    trainer, engine, channel = opened(folder)

    async def everything() -> None:
        first = await channel.publish(0)
        trainer.save(tmp_path)
        trainer.step(pack(groups_of(await written(engine)), TokenMean(), 0, 500), Objective((Likelihood(),)))
        assert (await channel.publish(1)).fingerprint != first.fingerprint
        trainer.resume(tmp_path)
        assert (await channel.publish(1)).fingerprint == first.fingerprint
        assert largest_gap(trainer, await written(engine)) < 1e-5

    asyncio.run(everything())
    assert trainer._opened is not None and trainer._opened.model is engine._model
