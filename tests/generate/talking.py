"""Model folders with a character tokenizer, and an engine that says given tokens and notes what it was asked."""

from __future__ import annotations

import asyncio
import string
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders
from tokenizers.models import BPE
from transformers import LlamaConfig, PreTrainedTokenizerFast

from strop.backends import Completion, Stop, WeightVersion
from strop.generate.policy import Policy
from strop.roles import Engine
from strop.types import IntArray, Message, Sampling, Task

CHATML = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
# thinking is shown in the last message only, as several reasoning models have it
FORGETFUL = (
    "{% for m in messages %}<|start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] | trim }}"
    "{% else %}{{ m.content }}{% endif %}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n<think>{% endif %}"
)
# a space before the end token, and nothing but the end token between two exchanges
BRACKETS = (
    "{% for m in messages %}{% if m.role == 'assistant' %} {{ m.content }} <|end|>"
    "{% else %}[{{ m.content }}]{% endif %}{% endfor %}"
)

SPECIAL = ("<|start|>", "<|end|>", "<|text|>")
VOCABULARY = {text: number for number, text in enumerate([*SPECIAL, *string.printable, "ab"])}
END = VOCABULARY["<|end|>"]

TASK = Task((Message("system", "be brief"), Message("user", "2+2=?")), "4", "test")


def save_folder(folder: Path, template: str | None = CHATML, end: int | None = END, positions: int = 4096) -> Path:
    """A folder as a tiny model would have it; "ab" is one token when text is tokenized."""
    tokenizer = Tokenizer(BPE(vocab=VOCABULARY, merges=[("a", "b")]))
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", clean_up_tokenization_spaces=False)
    if template is not None:
        fast.chat_template = template
    fast.save_pretrained(folder)
    LlamaConfig(vocab_size=len(VOCABULARY), eos_token_id=end, max_position_embeddings=positions).save_pretrained(folder)
    save_file({"weight": np.zeros(1, np.float32)}, folder / "model.safetensors")
    return folder


def ids(text: str) -> list[int]:
    """One token per character, also where text would be tokenized otherwise; `|` stands for the end token."""
    return [END if letter == "|" else VOCABULARY[letter] for letter in text]


@dataclass
class Recording(Engine):
    """Says the completions one after the other, one character per token, and keeps every prompt and limit."""

    completions: Sequence[str]
    prompts: list[IntArray] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)

    def open(self, model: Path) -> None:
        pass

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        tokens = np.array(ids(self.completions[len(self.prompts)]))[: sampling.max_tokens]
        self.prompts.append(prompt)
        self.limits.append(sampling.max_tokens)
        self.keys.append(key)
        is_stop = len(tokens) > 0 and (tokens[-1] == END or _text(tokens).endswith(tuple(sampling.stop) or "\0"))
        count = len(tokens)
        logprobs, versions = np.full(count, -0.5, np.float32), np.full(count, len(self.prompts))
        return Completion(tokens, logprobs, versions, Stop.STOP if is_stop else Stop.LENGTH)

    async def load(self, version: WeightVersion) -> str:
        return version.fingerprint

    def abort(self, key: int) -> None:
        pass


def _text(tokens: IntArray) -> str:
    letters = list(VOCABULARY)
    return "".join(letters[token] for token in tokens)


def policy_of(folder: Path, engine: Any, max_tokens: int = 64, context: int = 1024, **sampling: Any) -> Policy:
    return Policy.load(folder, engine, Sampling(max_tokens=max_tokens, **sampling), context)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)
