"""What does not fit on a GPU is refused before anything is loaded, with the numbers and with what would fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import Gemma3nTextConfig, GPT2Config, MambaConfig, Qwen2Config

from strop.control.admission.bounded_lag import BoundedLag
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.launch.checks.gpu_memory_plan import Sharing, expect, problems, refusals, said, sharing_of
from strop.models.layers.eight_bit_linear import outline
from strop.run import Run
from strop.training.losses.kl import Kl
from strop.training.machine.full_weights import holding_of
from strop.training.machine.memory import Room, largest_size
from strop.training.trainers.torch import TorchTrainer
from tests.launch.checks.test_preflight import make_run

GIB = 2**30


@pytest.fixture(scope="module")
def of_7b(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shape of Qwen2.5-7B: a configuration is all that is looked at."""
    folder = tmp_path_factory.mktemp("7b")
    Qwen2Config(
        vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28,
        num_key_value_heads=4, tie_word_embeddings=False, max_position_embeddings=32768,
        architectures=["Qwen2ForCausalLM"],
    ).save_pretrained(folder)  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def shape(of_7b: Path) -> Any:
    return outline(of_7b)


def sharing(shape: Any, gib: float, memory: float = 0.2, context: int = 2048, **settings: Any) -> Sharing:
    engine, trainer = PagedEngine(memory=memory, context=context), TorchTrainer(device="cuda", **settings)
    return Sharing(trainer, engine, shape, int(gib * GIB), context)


def test_an_outline_has_the_shape_and_no_memory(shape: Any) -> None:
    assert sum(each.numel() for each in shape.parameters()) == 7_615_616_512
    assert all(each.is_meta for each in shape.parameters())


def test_seven_billion_whole_beside_its_engine_on_one_h200(shape: Any) -> None:
    """139.8 GiB, a fifth of them for keys: weights 14.2 of the engine and 71 of training, 10 bytes for each."""
    found = sharing(shape, 139.8)
    way = found.chosen
    assert way.setting == "trainer.bytes_per_weight=10" and way.fits(found.total) and not refusals(found)
    assert way.engine["weights"] / GIB == pytest.approx(14.2, abs=0.05)
    assert way.engine["keys"] / GIB == pytest.approx(0.2 * 139.8, abs=0.1)
    held = way.weights + sum(way.needed[name] for name in ("gradients", "moments", "bits cut off"))
    assert held == 10 * 7_615_616_512
    assert sharing(shape, 139.8, memory=0.4).chosen.setting == "trainer.bytes_per_weight=6"  # as it comes
    assert sharing(shape, 300).chosen.setting == "trainer.bytes_per_weight=18"


def test_weights_in_eight_bits_are_half_of_the_engine_and_beside_those_that_learn(of_7b: Path) -> None:
    """6.53 billion weights of layers take 1 byte and a scale of 4 for every 128; 1.09 billion others 2 bytes."""
    layers = 28 * (4608 * 3584 + 3584 * 3584 + 37888 * 3584 + 3584 * 18944)
    found = sharing(outline(of_7b, "fp8"), 139.8, matmul_precision="fp8")
    held = layers * 132 / 128
    assert found.engine_bytes(lends=False)["weights"] == pytest.approx(held + 2 * (7_615_616_512 - layers), rel=1e-9)
    assert found.chosen.setting == "trainer.bytes_per_weight=10"
    assert found.chosen.needed["rounded weights"] == pytest.approx(held, rel=1e-9)


def test_a_reference_is_planned_before_it_is_loaded(of_7b: Path) -> None:
    run = replace(make_run(), model=str(of_7b), engine=PagedEngine(), trainer=TorchTrainer(device="cuda"))
    run = replace(run, losses=(*run.losses, Kl()))
    found = sharing_of(run, 200 * GIB)
    assert found is not None and found.room.others == 1
    narrow = found.whole()[-1]
    assert narrow.weights == (2 + 2) * 7_615_616_512
    adapted = replace(found, trainer=TorchTrainer(device="cuda", lora=8))
    assert adapted.room.others == 0 and adapted.chosen.weights == 2 * 7_615_616_512  # its reference is itself


def test_keys_that_are_given_back_while_a_step_is_trained(of_7b: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """24 GiB, of which weights take 14.2 once and keys 7.2: activations and keys fit one after the other."""
    engine, trainer = PagedEngine(memory=0.3, context=2048), TorchTrainer(device="cuda", lora=32, max_tokens=8192)
    run = replace(make_run(), model=str(of_7b), engine=engine, trainer=trainer, context=2048)
    asynchronous = replace(run, admission=BoundedLag(2))
    beside, turning = sharing_of(asynchronous, 24 * GIB), sharing_of(run, 24 * GIB)
    assert beside is not None and turning is not None and turning.is_in_turns and not beside.is_in_turns
    (told,) = refusals(beside)
    assert "the engine 7.2 GiB (keys 7.2)" in told and "lag=0 (" in told and "keys are given back" in told
    way, other = turning.chosen, beside.chosen
    assert not refusals(turning) and way.max_tokens == 8192 > other.max_tokens  # where nothing fits, the least is told
    keys = int(0.3 * 24 * GIB) // 917_504 * 917_504  # of 28 layers with 4 heads of 128, 16 tokens a page
    in_a_step, adapters = sum(way.needed.values()), way.needed["adapters"]
    assert way.total == 2 * 7_615_616_512 + max(in_a_step, adapters + keys) < 23 * GIB
    assert other.total == 2 * 7_615_616_512 + sum(other.needed.values()) + keys
    streaming = sharing_of(replace(run, streams=True), 24 * GIB)  # decodes while it trains
    assert streaming is not None and not streaming.is_in_turns
    roomy = sharing_of(run, 80 * GIB)
    assert roomy is not None and not roomy.is_in_turns, "where both fit nothing is given back"
    monkeypatch.setattr("strop.launch.checks.gpu_memory_plan.gpu_memory", lambda _: (24 * GIB, 24 * GIB))
    monkeypatch.setattr("strop.launch.checks.gpu_memory_plan.device_problem", lambda _: "")
    assert problems(run) == [] and "keys are given back while a step is trained" in said(run)[0]
    expect(run)
    assert engine.takes_turns and trainer.room == Room(2 * 7_615_616_512, 2048, 0, keys)


def test_what_does_not_fit_is_refused_with_what_would(shape: Any) -> None:
    (told,) = refusals(sharing(shape, 48))
    assert "7.62 billion weights on a GPU of 48.0 GiB" in told and "6 bytes a weight" in told
    assert (
        "gradients 14.2" in told and "moments 14.2" in told and "the engine 23.8 GiB (weights 14.2, keys 9.6)" in told
    )
    assert "It fits with trainer.lora=32 (" in told
    (told,) = refusals(sharing(shape, 80, bytes_per_weight=18))
    assert "It fits with trainer.lora=32" in told


def test_what_fits_only_as_an_engine(shape: Any) -> None:
    (told,) = refusals(sharing(shape, 22, memory=0.01, context=32768, lora=32))
    assert "adapters of rank 32" in told and "It fits as an engine alone (14.4 GiB)" in told
    assert "take a model of at most" in told
    (told,) = refusals(sharing(shape, 17, context=16384, lora=32))
    assert "It fits as an engine alone with fewer keys (weights 14.2 GiB)" in told
    (told,) = refusals(sharing(shape, 8, lora=32))
    assert "Nothing of it fits: the least that training takes is" in told


def test_four_bits_are_planned_and_proposed(shape: Any) -> None:
    """Engine and trainer below 16 GiB together, 8 x 1,024 tokens in a micro-batch and 16 rollouts of 1,024 live."""
    found = sharing(shape, 20, lora=32, base="nf4", max_tokens=8192, chunk=1024, context=1088)
    found = replace(found, engine=PagedEngine(cache_tokens=16 * 1088))
    way = found.chosen
    assert way.weights / GIB == pytest.approx(3.04 + 0.38 + 2.03 + 0.5, abs=0.06)  # codes, scales, tables, places
    assert way.is_checkpointed and way.total / GIB < 16 and way.fits(found.total) and not refusals(found)
    (told,) = refusals(sharing(shape, 22, lora=32, max_tokens=8192, chunk=1024))
    assert "It fits with trainer.lora=32 trainer.base=nf4 (" in told


def test_contexts_longer_than_a_micro_batch(shape: Any) -> None:
    (told,) = refusals(sharing(shape, 139.8, context=16384, max_tokens=8192, lora=32))
    assert told.startswith("contexts of up to 16384 tokens do not fit into micro-batches of 8192")
    assert "trainer.max_tokens=16384" in told
    found = sharing(shape, 139.8, context=32768, lora=32)  # rollouts of 32k tokens train and are written
    assert not refusals(found)
    (told,) = refusals(replace(found, engine=PagedEngine(memory=0.2)))
    assert "longer than the 8192 that the engine has room for: set engine.context=32768" in told


def test_where_there_is_no_gpu_nothing_is_said() -> None:
    run: Run = make_run()
    assert problems(run) == said(run) == []
    expect(run)
    assert isinstance(run.trainer, TorchTrainer) and run.trainer.room.taken == 0


def test_the_trainer_leaves_room_for_the_engine(of_7b: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch says what is free; beside 14 and 28 GiB of an engine there are 10 bytes a weight, alone on it 18."""
    monkeypatch.setattr("torch.cuda.current_device", lambda: 0)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda _: (160 * GIB, 160 * GIB))
    monkeypatch.setattr("torch.cuda.get_per_process_memory_fraction", lambda _: 1.0)
    for name in ("memory_reserved", "memory_allocated"):
        monkeypatch.setattr(f"torch.cuda.{name}", lambda _: 0)
    trainer = TorchTrainer(device="cuda", max_tokens=8192)
    assert holding_of(trainer, of_7b, trainer.room).total == 18
    trainer.expect(Room(42 * GIB, 2048))
    assert holding_of(trainer, of_7b, trainer.room).total == 10


def test_sizes_that_differ_by_layer_are_planned_by_the_largest() -> None:
    text = Gemma3nTextConfig(num_hidden_layers=2, intermediate_size=[64, 128], num_kv_shared_layers=0)
    assert largest_size(text, "intermediate_size") == 128
    assert largest_size(GPT2Config(n_layer=3), "num_hidden_layers") == 3
    assert largest_size(MambaConfig(), "num_attention_heads") == 0
