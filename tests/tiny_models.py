"""Tiny random models of several families, saved as Hugging Face folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders
from tokenizers.models import WordLevel
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Olmo2Config,
    Phi3Config,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named

VOCABULARY = 40
END = 1  # the end token of every tiny model
CONTEXT = 96
MODEL_FILES = {
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}  # of a folder with tokenizer

_COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 0,
    "eos_token_id": END,
    "pad_token_id": 2,
}
_WINDOW = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}

CONFIGS: dict[str, Any] = {
    "llama": lambda: LlamaConfig(**_COMMON, tie_word_embeddings=True),
    "mistral": lambda: MistralConfig(**_COMMON, sliding_window=5),
    "phi3": lambda: Phi3Config(**_COMMON, sliding_window=9),
    "olmo2": lambda: Olmo2Config(**_COMMON),
    "qwen2": lambda: Qwen2Config(**_COMMON),
    "qwen3": lambda: Qwen3Config(**_COMMON),
    "gemma": lambda: GemmaConfig(**_COMMON | {"num_key_value_heads": 1}),
    "gemma2": lambda: Gemma2Config(
        **_COMMON, **_WINDOW, attn_logit_softcapping=5.0, final_logit_softcapping=3.0, query_pre_attn_scalar=8
    ),
    "gemma3": lambda: Gemma3TextConfig(**_COMMON, **_WINDOW, query_pre_attn_scalar=8),
    "mixtral": lambda: MixtralConfig(**_COMMON, sliding_window=None, num_local_experts=4),
    "qwen3_moe": lambda: Qwen3MoeConfig(
        **_COMMON | {"num_hidden_layers": 3},
        num_experts=6,
        num_experts_per_tok=3,
        moe_intermediate_size=8,
        mlp_only_layers=[1],
        norm_topk_prob=False,
    ),
    "gpt2": lambda: GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=CONTEXT,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=END,
    ),
}


def save_tiny_model(folder: Path, family: str, seed: int = 0, spread: float = 20.0, **changes: Any) -> Path:
    """A random model whose predictions are far from uniform (`spread` multiplies its matrices), with a tokenizer."""
    torch.manual_seed(seed)
    config = CONFIGS[family]()
    for name, value in changes.items():
        setattr(config, name, value)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread) if parameter.ndim > 1 else parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def save_tokenizer(folder: Path) -> None:
    """One letter per token: ids 4 and up are a, b, c, ..."""
    letters = {chr(ord("a") + i - 4) if i < 30 else f"<{i}>": i for i in range(4, VOCABULARY)}
    tokenizer = Tokenizer(WordLevel({"<s>": 0, "</s>": 1, "<pad>": 2, "<unk>": 3, **letters}, unk_token="<unk>"))
    tokenizer.decoder = decoders.Fuse()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    ).save_pretrained(folder)


def load_reference(folder: Path) -> Any:
    """The same weights behind transformers' own eager attention."""
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()


@torch.no_grad()
def reference_logprobs(model: Any, tokens: Any) -> torch.Tensor:
    """Log-probabilities [T, V] of one whole sequence; row t predicts token t + 1."""
    output = model(input_ids=torch.as_tensor(tokens).unsqueeze(0), use_cache=False)
    return torch.log_softmax(output.logits[0].float(), -1)


def save_pocket_like(folder: Path, seed: int = 0, layers: int = 1, width: int = 32, experts: int = 0) -> Path:
    """A small random model that speaks the pocket model's language."""
    from strop.pocket.tokenizer import END as END_TEXT
    from strop.pocket.tokenizer import PAD, TOKEN_IDS, VOCABULARY
    from strop.pocket.tokenizer import save_tokenizer as save_pocket_tokenizer

    torch.manual_seed(seed)
    kind, more = (MixtralConfig, {"num_local_experts": experts}) if experts else (LlamaConfig, {})
    config = kind(
        **more,
        vocab_size=len(VOCABULARY),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=TOKEN_IDS[END_TEXT],
        pad_token_id=TOKEN_IDS[PAD],
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    save_pocket_tokenizer(folder, 512)
    return folder


def small_grpo_run(folder: Path, steps: int) -> Path:
    """The folder of a finished run of a tiny model."""
    sizes = {"steps": steps, "groups_per_step": 2, "group_size": 2, "max_tokens": 4, "heldout_tasks": 2}
    run = build(recipe_named("grpo"), {"model": str(save_pocket_like(folder / "model")), **sizes})
    launch(run, folder, "run")
    return folder / "run"
