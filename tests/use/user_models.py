"""Models of a user: the bundled one taught their sums, and one of another family, tokenizer and chat template.

The other one begins with the bundled model's weights, so that some of its rollouts are right; all token ids are others,
and no token stands for a role, for thinking or for a call. Both answer at different lengths, as models do.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config

from strop.models.loading.model_names import model_folder
from strop.pocket.tokenizer import CHARACTERS, PAD, TOKEN_IDS, UNKNOWN
from strop.pocket.tokenizer import END as POCKET_END
from tests.use.situations import asked, steps

_END, _START = "</s>", "<s>"
_KEPT = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"]
_KEPT += ["num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings", "rope_parameters"]
_TEMPLATE = """\
{%- for message in messages -%}
{{- '<s>' + message['role'] + ': ' + message['content'] + '</s>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<s>assistant: ' -}}
{%- endif -%}"""


def save_own_model(folder: Path) -> None:
    """Write the bundled model after a few seconds of the user's sums."""
    shutil.copytree(model_folder("pocket"), folder, dirs_exist_ok=True)
    _taught(folder)


def save_other_model(folder: Path) -> None:
    """Write the model with its tokenizer and template."""
    pocket = AutoModelForCausalLM.from_pretrained(model_folder("pocket"))
    order = list(range(len(TOKEN_IDS)))
    random.Random(7).shuffle(order)  # new id of each token of the bundled model
    config = Qwen2Config(
        **{name: getattr(pocket.config, name) for name in _KEPT},
        bos_token_id=None,
        eos_token_id=order[TOKEN_IDS[POCKET_END]],
        pad_token_id=order[TOKEN_IDS[PAD]],
    )
    model = AutoModelForCausalLM.from_config(config)
    weights = {name: torch.zeros_like(each) for name, each in model.state_dict().items() if name.endswith("bias")}
    weights |= pocket.state_dict()
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        moved = torch.empty_like(weights[name])
        moved[torch.tensor(order)] = weights[name]
        weights[name] = moved
    model.load_state_dict(weights)
    model.save_pretrained(folder)
    _save_tokenizer(folder, order)
    _taught(folder)


def _save_tokenizer(folder: Path, order: list[int]) -> None:
    called = {UNKNOWN: "<unk>", PAD: "<pad>", POCKET_END: _END, "<|user|>": _START}
    ids = {
        called.get(token, token if token in CHARACTERS else f"<{place}>"): order[place]
        for token, place in TOKEN_IDS.items()
    }
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in ("<pad>", "<unk>", _END, _START)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    said = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 512,
        "eos_token": _END,
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "chat_template": _TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(said, indent=2) + "\n")


def _taught(folder: Path, count: int = 200, size: int = 32) -> None:
    """Teach it sums; about half of its answers are right then."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    stream = random.Random(3)
    for _ in range(count):
        texts = [_example(tokenizer, stream) for _ in range(size)]
        tokens = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        labels = tokens.input_ids.masked_fill(tokens.attention_mask == 0, -100)
        loss = model(**{name: tokens[name] for name in ("input_ids", "attention_mask")}, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)


def _example(tokenizer: Any, stream: random.Random) -> str:
    terms = tuple(stream.randint(10, 99) for _ in range(stream.choice((2, 3))))
    chat = [{"role": "user", "content": asked(terms)}, {"role": "assistant", "content": _completion(terms, stream)}]
    return str(tokenizer.apply_chat_template(chat, tokenize=False))


def _completion(terms: tuple[int, ...], stream: random.Random) -> str:
    """With thoughts, in words, or at once."""
    said = " ".join(steps(terms))
    return stream.choice((f"<think>{said}</think>{sum(terms)}", f"{said} So {sum(terms)}", str(sum(terms))))
