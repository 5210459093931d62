"""Model folders to measure on: SmolLM2, random weights of other sizes, and one whose completions have a heavy tail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from strop.models.loading.model_names import model_folder
from strop.pocket.tokenizer import CHARACTERS, END, ROLES, TOKEN_IDS, save_tokenizer

_QWEN = {"rope_theta": 1e6, "rms_norm_eps": 1e-6, "bos_token_id": None}
# the shapes of Qwen2.5; "tiny" is for tests
SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {"vocab_size": 107, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "0.5b": {"vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
             "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "1.5b": {"vocab_size": 151936, "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
             "num_attention_heads": 12, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "7b": {"vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
           "num_attention_heads": 28, "num_key_value_heads": 4, "tie_word_embeddings": False},
}  # fmt: skip
_IMPOSSIBLE = -30.0  # a logit
_NEVER = 16  # a token of SmolLM2 that it does not write


def prepare(name: str, folder: Path, device: str, longest: int = 8192) -> Path:
    """A folder whose model practically never ends a completion by itself: SmolLM2, a shape with random weights, or
    yours.

    A shape takes sequences of up to `longest` tokens.
    """
    if name in SHAPES:
        return _random(SHAPES[name] | {"max_position_embeddings": longest}, folder / name, device)
    source, target = model_folder(name), folder / Path(name).name
    target.mkdir(parents=True)
    for path in source.iterdir():
        (target / path.name).symlink_to(path.resolve())
    for file in ("config.json", "generation_config.json"):
        settings = json.loads((source / file).read_text())
        (target / file).unlink()
        (target / file).write_text(json.dumps(settings | {"eos_token_id": _NEVER, "pad_token_id": _NEVER}))
    return target


def _random(shape: dict[str, Any], folder: Path, device: str) -> Path:
    torch.manual_seed(0)
    config = Qwen2Config(**shape, **_QWEN, eos_token_id=shape["vocab_size"] - 1, pad_token_id=0)
    dtype = torch.bfloat16 if torch.device(device).type == "cuda" else torch.float32
    with torch.device(device):
        model = Qwen2ForCausalLM(config).to(dtype)
    model.save_pretrained(folder)
    return folder


def cost(folder: Path) -> tuple[int, int]:
    """Bytes of bfloat16 that one decode step reads: of all weights, and of the keys and values of one token."""
    config = json.loads((folder / "config.json").read_text())
    with torch.device("meta"):
        kind = Qwen2ForCausalLM if config["model_type"] == "qwen2" else LlamaForCausalLM
        model = kind(kind.config_class.from_dict(config))
    weights = sum(parameter.numel() for parameter in model.parameters())
    if not model.config.tie_word_embeddings:
        weights -= model.get_input_embeddings().weight.numel()  # a few rows are looked up
    width = model.config.hidden_size // model.config.num_attention_heads
    return 2 * weights, 4 * model.config.num_hidden_layers * model.config.num_key_value_heads * width


def heavy_tailed(name: str, folder: Path, shortest: int, longest: int) -> Path:
    """A model that computes like `name` and whose completions outlive n tokens with probability `shortest` / n."""
    if name == "tiny":
        shape = {**SHAPES["tiny"], "hidden_size": 256, "num_attention_heads": 4}
        end, start, ticks = TOKEN_IDS[END], TOKEN_IDS[ROLES["assistant"]], [TOKEN_IDS[each] for each in CHARACTERS]
    else:
        shape = json.loads((model_folder(name) / "config.json").read_text())
        tokenizer = AutoTokenizer.from_pretrained(model_folder(name))
        named = shape["eos_token_id"]  # the one that ends a completion: a tokenizer of another version may name another
        end, start = named[-1] if isinstance(named, list) else named, tokenizer("\n")["input_ids"][-1]
        ticks = list(range(1000, 1500))
    kept = {key: value for key, value in shape.items() if key not in ("model_type", "architectures", "dtype")}
    ends = {"tie_word_embeddings": False, "eos_token_id": end, "pad_token_id": end, "bos_token_id": None}
    positions = {"max_position_embeddings": longest + 1024}
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**(kept | ends | positions)))
    _give_tail(model, start, end, ticks, shortest, longest)
    model.save_pretrained(folder)
    if name == "tiny":
        save_tokenizer(folder, model.config.max_position_embeddings)
    else:
        for path in [*model_folder(name).glob("tokenizer*"), *model_folder(name).glob("*.jinja")]:
            shutil.copyfile(path, folder / path.name)
    return folder


@torch.no_grad()
def _give_tail(model: Any, start: int, end: int, ticks: Sequence[int], shortest: int, longest: int) -> None:
    """The layers compute as ever and add nothing; an embedding is one coordinate, and the output layer holds the
    logarithms of a Markov chain over tokens: a clock that moves on, or stays, or ends the completion."""
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    ids = [start, *ticks]
    model.model.embed_tokens.weight.zero_()
    model.model.embed_tokens.weight[:, len(ids)] = 1.0  # whatever else is read
    model.model.embed_tokens.weight[ids] = torch.eye(len(ids), model.config.hidden_size)
    logits = torch.full_like(model.lm_head.weight, 0.0)  # [V, hidden]
    logits[:, : len(ids) + 1] = _IMPOSSIBLE
    logits[end, len(ids)] = 0.0
    logits[ticks[0], 0], logits[end, 0] = 0.0, _IMPOSSIBLE
    places = _places(len(ticks), longest)
    for tick, token in enumerate(ticks):
        ends = 1 / (places[tick] + 1) if places[tick] >= shortest else 0.0
        dwell = places[tick + 1] - places[tick] if tick + 1 < len(ticks) else float("inf")
        probabilities = {end: ends, token: (1 - ends) * (1 - 1 / dwell)}
        if tick + 1 < len(ticks):
            probabilities[ticks[tick + 1]] = (1 - ends) / dwell
        for following, probability in probabilities.items():
            logits[following, tick + 1] = torch.tensor(max(probability, 1e-30)).log().clamp_min(_IMPOSSIBLE)
    # the norm before the output layer makes the one coordinate sqrt(hidden)
    model.lm_head.weight.copy_(logits / model.config.hidden_size**0.5)


def _places(count: int, longest: int) -> list[float]:
    """How many tokens a completion has at each tick: one by one, then by a factor with which the last tick is at the
    end.
    """

    def reached(factor: float) -> list[float]:
        places = [1.0]
        while len(places) < count:
            places.append(max(places[-1] + 1, places[-1] * factor))
        return places

    low, high = 1.0, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle)[-1] < longest else (low, middle)
    return reached(high)
