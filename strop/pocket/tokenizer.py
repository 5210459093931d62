"""Tokenizer of the pocket model: one token per printable ASCII character, and a few for roles, scratchpad and calls."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
PAD, UNKNOWN, END = "<|pad|>", "<unk>", "<|end|>"
ROLES = {role: f"<|{role}|>" for role in ("system", "user", "assistant", "tool")}
# not marked special: a decoder that skips special tokens must still show them, since environments read them
TAGS = ("<think>", "</think>", "<call>", "</call>")
VOCABULARY = (PAD, UNKNOWN, END, *ROLES.values(), *TAGS, *CHARACTERS)
TOKEN_IDS = {token: number for number, token in enumerate(VOCABULARY)}

CHAT_TEMPLATE = """\
{%- for message in messages -%}
{%- if message['role'] not in ('system', 'user', 'assistant', 'tool') -%}
{{- raise_exception('role must be system, user, assistant or tool, got ' + message['role']) -}}
{%- endif -%}
{{- '<|' + message['role'] + '|>' + (message['content'] or '') -}}
{%- for call in message['tool_calls'] or [] -%}
{%- set function = call['function'] or call -%}
{%- set arguments = function['arguments'] -%}
{{- '<call>' + function['name'] + ' ' + (arguments if arguments is string else arguments | tojson) + '</call>' -}}
{%- endfor -%}
{{- '<|end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|assistant|>' -}}
{%- endif -%}"""


def build_tokenizer() -> Tokenizer:
    """A tokenizer whose decoding gives back exactly the text that was encoded."""
    tokenizer = Tokenizer(models.WordLevel(TOKEN_IDS, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    special = [PAD, UNKNOWN, END, *ROLES.values()]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in TAGS])
    return tokenizer


def save_tokenizer(folder: Path, max_length: int) -> None:
    """Write what `AutoTokenizer` needs, without any code of ours."""
    build_tokenizer().save(str(folder / "tokenizer.json"))
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "eos_token": END,
        "pad_token": PAD,
        "unk_token": UNKNOWN,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration, indent=2) + "\n")
