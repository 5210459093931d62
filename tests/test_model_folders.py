"""Folders that would train something else than they say are refused, with names, by everybody who loads a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    FalconConfig,
    GPTJConfig,
    MptConfig,
)

from strop.errors import ConfigurationError, ModelError
from strop.filter.judges.pairwise_judge import Generative
from strop.generate.engines.cpu.torch_engine import TorchEngine, read_weights
from strop.models.loading.check_folder import check_context, check_model_folder
from strop.models.model import load_model
from strop.training.trainers.torch import TorchTrainer
from strop.training.values.critic import Critic
from strop.types import Sampling, Task
from tests.generate.engines.asking import asked, opened, prompts_of, worst_difference
from tests.tiny_models import load_reference, save_pocket_like, save_tiny_model, save_tokenizer

_LOST = "model.layers.0.self_attn.q_proj.weight"
_SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
_FOREIGN: dict[str, Callable[[], Any]] = {
    "falcon": lambda: FalconConfig(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2),
    "gptj": lambda: GPTJConfig(vocab_size=40, n_positions=96, n_embd=16, n_layer=1, n_head=2, rotary_dim=4),
    "mpt": lambda: MptConfig(d_model=16, n_heads=2, n_layers=1, vocab_size=40),
}


def changed_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> Path:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def changed_config(folder: Path, **values: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return folder


def with_a_hole(folder: Path) -> Path:
    return changed_weights(save_pocket_like(folder), lambda weights: weights.pop(_LOST))


def test_missing_tensors_are_named_by_everybody_who_loads(tmp_path: Path) -> None:
    folder = with_a_hole(tmp_path)
    judge = Generative(str(folder))
    everybody: dict[str, Callable[[], Any]] = {
        "trainer": lambda: TorchTrainer().open(folder, 0),
        "engine": lambda: TorchEngine().open(folder),
        "values": lambda: Critic().open(folder, 0),
        "teacher": lambda: load_model(folder),
        "judge": lambda: judge.first_wins(Task((), "", ""), "1", "2"),
        "version": lambda: read_weights(str(folder), SimpleNamespace(dtype=torch.float32)),
    }
    for who, load in everybody.items():
        with pytest.raises(ModelError, match=f"1 missing: {_LOST}"):
            load()
            pytest.fail(f"{who} took random numbers for weights")


def test_tensors_of_another_shape_are_named(tmp_path: Path) -> None:
    folder = changed_weights(
        save_tiny_model(tmp_path, "qwen2"), lambda weights: weights.update({_LOST: torch.ones(3, 3)})
    )
    with pytest.raises(
        ModelError, match=r"1 of another shape: .*q_proj.weight \(file \[3, 3\], config.json \[32, 16\]\)"
    ):
        load_model(folder)


def test_a_file_cut_short_is_a_sentence(tmp_path: Path) -> None:
    path = save_tiny_model(tmp_path, "qwen2") / "model.safetensors"
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(tmp_path)


@pytest.mark.parametrize("family", _FOREIGN)
def test_families_that_do_not_run_are_told_which_do(tmp_path: Path, family: str) -> None:
    AutoModelForCausalLM.from_config(_FOREIGN[family]()).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    with pytest.raises(ModelError, match=rf"the family {family} does not run.*Families that run: .*\bqwen3\b"):
        load_model(tmp_path)


@pytest.mark.parametrize("family", ["deepseek_v32", "glm_moe_dsa"])
def test_sparse_attention_is_refused_with_its_reason(tmp_path: Path, family: str) -> None:
    """Before anything is read: such a model has hundreds of billions of weights."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family, "index_topk": 2048}))
    with pytest.raises(
        ModelError, match=rf"{family} has sparse attention: each token reads the 2048 keys.*deepseek_v3"
    ):
        load_model(tmp_path)


def test_quantised_weights_are_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    folder = save_pocket_like(tmp_path)
    check_model_folder(folder)
    changed_config(folder, quantization_config={"quant_method": "gptq", "bits": 4})
    with pytest.raises(ModelError, match=r"quantised \(gptq\).*take the model in float32, bfloat16 or float16"):
        check_model_folder(folder)


def test_adapters_alone_are_no_model(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"r": 16, "base_model_name_or_path": "models/small"}')
    with pytest.raises(ModelError, match="holds adapters of rank 16 for the model models/small, and no model"):
        check_model_folder(tmp_path)


def test_code_in_a_folder_is_refused_unless_transformers_has_the_architecture(tmp_path: Path) -> None:
    folder = changed_config(save_pocket_like(tmp_path), auto_map={"AutoModelForCausalLM": "own.Model"})
    check_model_folder(folder)
    with pytest.raises(ModelError, match=r"brings its own code .*no architecture 'own'"):
        check_model_folder(changed_config(folder, model_type="own"))


@pytest.mark.parametrize(
    ("device", "words"), [("tpu", "there is no device 'tpu'"), ("cuda:77", "device='?cuda:77|no device 'cuda:77'")]
)
def test_devices_that_are_not_there_are_refused(tmp_path: Path, device: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load_model(save_tiny_model(tmp_path, "llama"), device=device)


def test_longrope_ends_where_its_positions_would_turn_otherwise(tmp_path: Path) -> None:
    """Of a sequence that grows beyond the original length, and of all beside it, keys would be of another model."""
    rope = {"rope_type": "longrope", "rope_theta": 100.0, "original_max_position_embeddings": 24}
    rope |= {"short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 3.0, 4.0, 6.0]}
    folder = save_tiny_model(tmp_path, "llama", rope_parameters=rope, eos_token_id=None)
    engine, prompts = opened(folder, rows=3), prompts_of([3, 20, 9, 23, 14])
    for prompt, written in zip(prompts, asked(engine, prompts, Sampling(max_tokens=30)), strict=True):
        assert len(prompt) + len(written.tokens) == 24
        assert worst_difference(load_reference(folder), prompt, written) < 1e-4
    check_context(folder, 24)
    with pytest.raises(ConfigurationError, match=r"context=25 is more than the 24 positions .* of its 96, .*longrope"):
        check_context(folder, 25)


@pytest.mark.parametrize("length", [None, "many"])
def test_longrope_that_does_not_say_its_original_length_is_refused(tmp_path: Path, length: object) -> None:
    folder = save_tiny_model(tmp_path, "llama")
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] = {"all": {"rope_type": "longrope", "original_max_position_embeddings": length}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="longrope needs original_max_position_embeddings as a number"):
        check_context(folder, 8)


_ABSURD: dict[str, tuple[dict[str, Any], str]] = {
    "wide": ({"hidden_size": 10**9}, "says hidden_size=1000000000, and its"),
    "deep": ({"num_hidden_layers": 10**7}, "says num_hidden_layers=10000000, and its"),
    "negative": ({"vocab_size": -4}, "says vocab_size=-4"),
    "endless": ({"intermediate_size": 10**400}, "says intermediate_size=1000"),
    "text": ({"hidden_size": "x"}, "describes no model that transformers knows: .*expected int"),
    "fraction": ({"num_hidden_layers": 1.5}, "describes no model"),
    "nothing": ({"num_attention_heads": 0}, "describes no model .*zero"),
    "ends": ({"eos_token_id": {"a": 1}}, "describes no model"),
    "list": ({"model_type": ["a"]}, "describes no model"),
    "dtype": ({"dtype": "float999"}, "describes no model .*float999"),
}


@pytest.mark.parametrize("name", list(_ABSURD))
def test_configurations_of_no_model_are_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    """Before any memory is asked for: a size of 10^7 layers took minutes, one of 10^9 columns all there is."""
    values, said = _ABSURD[name]
    folder = changed_config(save_pocket_like(tmp_path), **values)
    with pytest.raises(ModelError, match=said):
        load_model(folder)
    if "describes" in said:
        with pytest.raises(ModelError, match=said):
            check_context(folder, 64)


def test_json_that_is_too_deep_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = save_pocket_like(tmp_path)
    (folder / "config.json").write_text('{"a":' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(ModelError, match="is not valid JSON"):
        check_model_folder(folder)
