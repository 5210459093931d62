"""jet-rl: engine and trainer round what they multiply by one rule; one that does not is found and refused."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from strop.backends import Completion, WeightVersion
from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.vllm.vllm_engine import VllmEngine
from strop.generate.engines.wrappers.load_balanced import Several
from strop.launch.checks.parts_agree import precision_problems
from strop.launch.checks.preflight import check
from strop.models.layers.eight_bit_linear import EightBitLinear, in_eight_bits, rounding
from strop.models.loading.model_names import model_folder
from strop.models.model import load_model, parameters
from strop.placement.place import place
from strop.recipes.setting import Setting
from strop.recipes.system.jet_rl import jet_rl
from strop.roles import Trainer
from strop.training.trainers.ranks import Ranks
from strop.training.trainers.torch import TorchTrainer
from strop.types import Sampling
from strop.weights.delivery import as_held
from strop.weights.fingerprint import fingerprint
from tests.tiny_models import reference_logprobs, save_pocket_like


@dataclass
class Elsewhere(Trainer):
    """One that says nothing of what it multiplies."""


def test_its_parts() -> None:
    run = jet_rl(Setting())
    assert isinstance(run.engine, TorchEngine) and isinstance(run.trainer, TorchTrainer)
    assert run.engine.matmul_precision == run.trainer.matmul_precision == "fp8"


def test_its_parts_on_a_gpu() -> None:
    run = jet_rl(Setting(device="cuda"))
    assert isinstance(run.engine, PagedEngine) and isinstance(run.trainer, TorchTrainer)
    assert run.engine.matmul_precision == run.trainer.matmul_precision == "fp8" and run.trainer.device == "cuda"
    assert not precision_problems(run)


@pytest.mark.parametrize(
    "engine", [TorchEngine(matmul_precision="fp8"), PagedEngine(8, "cpu", "float32", matmul_precision="fp8")]
)
def test_engine_and_trainer_agree_and_one_that_rounds_alone_does_not(engine: TorchEngine | PagedEngine) -> None:
    """Tokens of the engine, scored by a model that rounds and by one that does not.

    On a CPU sums depend on what else is in a batch, and now and then one of them rounds to the other side.
    """
    folder = model_folder("pocket")
    engine.open(folder)
    prompts = [np.arange(5 + index, 25 + index) for index in range(8)]

    async def ask() -> list[Completion]:
        sampling = Sampling(max_tokens=24)
        return await asyncio.gather(*(engine.sample(prompt, sampling, key) for key, prompt in enumerate(prompts)))

    pairs = list(zip(prompts, asyncio.run(ask()), strict=True))
    apart = {}
    for name in ("fp8", "plain"):
        model = load_model(folder)
        model.set_attn_implementation("eager")
        if name == "fp8":
            in_eight_bits(model)
        gaps = []
        for prompt, completion in pairs:
            scores = reference_logprobs(model, np.concatenate([prompt, completion.tokens])).numpy()[
                len(prompt) - 1 : -1
            ]
            gaps += np.abs(scores[np.arange(len(completion.tokens)), completion.tokens] - completion.logprobs).tolist()
        apart[name] = float(np.median(gaps))
    assert apart["fp8"] < 1e-4 and apart["plain"] > max(0.003, 1000 * apart["fp8"]), apart


def test_weights_that_learn_are_not_rounded(tmp_path: Path) -> None:
    folder = save_pocket_like(tmp_path / "model", width=160)
    model = load_model(folder)
    before = fingerprint(parameters(model))
    in_eight_bits(model)
    assert fingerprint(parameters(model)) == before and 0.01 < rounding(model) < 0.04
    assert not isinstance(model.get_output_embeddings(), EightBitLinear)
    layer = model.base_model.layers[0].self_attn.q_proj
    held = layer.held().read()
    with torch.no_grad():
        layer.weight.mul_(2)
    assert torch.equal(layer.held().read(), 2 * held), "a weight that has changed is rounded anew"
    engine = TorchEngine(matmul_precision="fp8")
    engine.open(folder)
    published = as_held(parameters(model), [engine])
    assert asyncio.run(engine.load(WeightVersion(1, location=published))) == fingerprint(published)
    name = "model.layers.0.self_attn.q_proj"
    assert torch.equal(engine._model.get_submodule(name).eights.read(), layer.held().read())


def test_one_that_multiplies_otherwise_is_refused(tmp_path: Path) -> None:
    run = jet_rl(Setting())
    check(run)  # as it is, and in a process of its own, it is not
    check(place(run, "process"))
    for engine in (TorchEngine(), PagedEngine(device="cpu", dtype="float32")):
        with pytest.raises(ConfigurationError, match="plain in the engine and fp8 in the trainer"):
            check(replace(run, engine=engine))
    with pytest.raises(ConfigurationError, match="fp8 in the engine and plain in the trainer"):
        check(replace(run, trainer=TorchTrainer()))
    mixed = Several((TorchEngine(matmul_precision="fp8"), VllmEngine(device="cpu", dtype="float32")))
    with pytest.raises(
        ConfigurationError, match=r"fp8 and plain in the engine and fp8 in the trainer.*\(VllmEngine can only"
    ):
        check(replace(run, engine=mixed))
    with pytest.raises(ConfigurationError, match=r"fp8 in the engine and plain in the trainer.*\(Elsewhere can only"):
        check(replace(run, trainer=Elsewhere()))
    with pytest.raises(ConfigurationError, match="matmul_precision='fp9'"):
        TorchTrainer(matmul_precision="fp9")
    with pytest.raises(ConfigurationError, match="set lora=0"):
        TorchTrainer(matmul_precision="fp8", lora=4)
    with pytest.raises(ConfigurationError, match="matmul_precision='int4'"):
        TorchEngine(matmul_precision="int4").open(save_pocket_like(tmp_path))
    for device, dtype in {"cpu": "float32", "cuda": "bfloat16"}.items():
        run = jet_rl(Setting(device=device))
        assert run.engine.dtype == run.trainer.dtype == dtype  # type: ignore[union-attr]
    with pytest.raises(ConfigurationError, match="Ranks multiplies in full precision"):
        Ranks(TorchTrainer(matmul_precision="fp8"))


def test_a_model_with_other_products_than_linear_layers_is_refused() -> None:
    sizes = {"vocab_size": 8, "n_positions": 8, "n_embd": 4, "n_layer": 1, "n_head": 1, "bos_token_id": 0}
    with pytest.raises(ConfigurationError, match="GPT2LMHeadModel multiplies in Conv1D"):
        in_eight_bits(GPT2LMHeadModel(GPT2Config(**sizes, eos_token_id=0)))


def test_reference_and_earlier_weights_multiply_as_the_policy_does(tmp_path: Path) -> None:
    trainer = TorchTrainer(matmul_precision="fp8", snapshots=2)
    trainer.open(save_pocket_like(tmp_path), 0)
    opened = trainer._ready()
    earlier = opened.earlier._with(parameters(opened.model))
    tokens = torch.arange(4, 12).unsqueeze(0)
    found = []
    for model in (opened.model, trainer._policy("reference"), earlier):
        model.set_attn_implementation("eager")
        found.append(model(tokens).logits)
    assert torch.equal(found[1], found[0]) and torch.equal(found[2], found[0])


def test_a_copy_rounds_its_own_weights() -> None:
    layer = EightBitLinear(4, 4)
    with torch.no_grad():
        for _ in range(2):
            layer.weight.mul_(3)
        layer.held()
        other = copy.deepcopy(layer)
        while other.weight._version < layer.weight._version:
            other.weight.mul_(0)
    assert isinstance(other, EightBitLinear) and not other.held().read().any()
