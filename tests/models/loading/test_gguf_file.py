"""A model folder as GGUF: another library reads the same logits and tokens from it; what it cannot say is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from strop.errors import ModelError
from strop.models.loading.gguf_file import _NAMES, _vocabulary, write_gguf
from strop.models.loading.model_names import POCKET

SIZES = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "eos_token_id": 0,
    "bos_token_id": None,
}
TEXT = "What is 12+34? It's 46,\n\nof course.  Größer!"


def saved(folder: Path, config: LlamaConfig | Qwen2Config | Qwen3Config) -> Path:
    """A small model with weights at random, and a tokenizer that splits as Qwen2's."""
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    rule = next(rule for rule, name in _NAMES.items() if name == "qwen2")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(rule), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=290, special_tokens=["<|end|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator([TEXT, "12+34 is 46, what else is it"] * 4, trainer)
    whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")
    whole.chat_template = "{% for message in messages %}{{ message['content'] }}<|end|>{% endfor %}"
    whole.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", [LlamaConfig, Qwen2Config, Qwen3Config])
def test_another_library_reads_the_same_logits_and_tokens(kind: type, tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")  # by which transformers reads such files
    extra = {LlamaConfig: {"head_dim": 8}, Qwen3Config: {"head_dim": 128}}.get(kind, {})  # all that is read of Qwen3
    folder = saved(tmp_path / "model", kind(**SIZES, **extra, tie_word_embeddings=kind is LlamaConfig))
    write_gguf(folder, tmp_path / "model.gguf")
    read = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf", dtype=torch.float32)
    written = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer, again = (
        AutoTokenizer.from_pretrained(folder),
        AutoTokenizer.from_pretrained(tmp_path, gguf_file="model.gguf"),
    )
    ids = tokenizer(TEXT)["input_ids"]
    assert again(TEXT)["input_ids"] == ids and again.chat_template == tokenizer.chat_template
    with torch.no_grad():
        logits = [model(torch.tensor([ids])).logits for model in (written, read)]
    torch.testing.assert_close(logits[0], logits[1], rtol=0, atol=1e-5)


def test_what_cannot_be_written_exactly_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    with pytest.raises(ModelError, match=r"has WordLevel with .*convert_hf_to_gguf\.py"):
        write_gguf(POCKET, tmp_path / "pocket.gguf")
    scaled = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0, "original_max_position_embeddings": 64}
    folder = saved(tmp_path / "scaled", LlamaConfig(**SIZES, rope_parameters=scaled))
    with pytest.raises(ModelError, match="without scaled positions"):
        write_gguf(folder, tmp_path / "scaled.gguf")
    assert not list(tmp_path.glob("*.gguf"))


def test_digits_that_stand_alone_are_smollms_rule(tmp_path: Path) -> None:
    """The bundled SmolLM2 splits so, and llama.cpp by \\p{N} and then as GPT-2."""
    folder = saved(tmp_path, LlamaConfig(**SIZES))
    written = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for is_alone, name in ((True, "smollm"), (False, None)):
        digits = pre_tokenizers.Digits(individual_digits=is_alone)
        written.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
        written.save(str(folder / "tokenizer.json"))
        if name is None:
            with pytest.raises(ModelError, match="Digits"):
                _vocabulary(folder, 300)
        else:
            assert _vocabulary(folder, 300)["rule"] == name
