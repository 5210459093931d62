"""A model that writes what it is told, and scores it truly: for clients whose formats the bundled one never learned."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from strop.backends import Completion, Stop, WeightVersion
from strop.generate.engines.cpu.torch_engine import copy_weights, read_weights
from strop.generate.engines.scripted import Scripted
from strop.models.model import parameters
from strop.types import IntArray, Sampling
from strop.weights.fingerprint import fingerprint
from tests.generate.serve.test_call_format import CALLS, marked
from tests.generate.talking import END
from tests.tiny_models import load_reference, reference_logprobs

_LONGEST = 1024


@dataclass
class Dictated(Scripted):
    """The script's completions under the weights that were published last, each token with its logprob there."""

    has_weights: ClassVar[bool] = True
    _model: Any = field(init=False, repr=False, compare=False, default=None)
    _begun: dict[int, tuple[int, Completion]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def open(self, model: Path) -> None:
        super().open(model)
        self._model = load_reference(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        made = await self._piece(prompt, sampling, key)
        rows = reference_logprobs(self._model, [*prompt.tolist(), *made.tokens.tolist()])[len(prompt) - 1 : -1]
        own = rows.gather(1, torch.as_tensor(made.tokens)[:, None])[:, 0]
        return replace(made, logprobs=np.asarray(own, dtype=np.float32))

    async def _piece(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """The next tokens of a completion that is asked for in pieces, or the first of another one."""
        begin, whole = self._begun.get(key, (0, None))
        at = len(prompt) - begin
        if whole is None or not 0 < at < len(whole.tokens) or not np.array_equal(prompt[begin:], whole.tokens[:at]):
            whole, at = await super().sample(prompt, replace(sampling, max_tokens=_LONGEST), key), 0
            self._begun[key] = len(prompt), whole
        end = at + sampling.max_tokens
        is_whole = end >= len(whole.tokens)
        return Completion(
            whole.tokens[at:end], whole.logprobs[at:end], whole.versions[at:end], Stop.STOP if is_whole else Stop.LENGTH
        )

    async def load(self, version: WeightVersion) -> str:
        await super().load(version)
        copy_weights(read_weights(version.location, self._model), parameters(self._model))
        return fingerprint(parameters(self._model))


@dataclass
class Clerk:
    """Looks up one key after the other, stores the sum where it must, and answers: rightly every other time."""

    result: str  # how an answer of the store is found in what was read, as a pattern
    get: str  # with {key}
    set: str  # with {key} and {value}
    answer: str  # with {value}
    first: str = ""  # said before all else, where what was read holds no `seen`
    seen: str = ""
    _answers: int = field(default=0, init=False, repr=False, compare=False)

    def __call__(self, prompt: str, key: int) -> str:
        if self.first and self.seen not in prompt:
            return self.first
        keys, target = re.findall(r"sum ([a-z ]+?)(?: to ([a-z]+))?(?=<|\n|\")", prompt)[-1]
        known = [found for found in re.findall(self.result, prompt) if found]
        if len(known) < len(keys.split()):
            return self.get.replace("{key}", keys.split()[len(known)])
        total = sum(map(int, known[: len(keys.split())]))
        if target and len(known) == len(keys.split()):
            return self.set.replace("{key}", target).replace("{value}", str(total))
        self._answers += 1
        return self.answer.replace("{value}", str(total + self._answers % 2))


def save_obedient(folder: Path, positions: int) -> Path:
    """A small random model whose template writes calls as JSON between marks."""
    template = marked(folder, CALLS, ("<tool_call>", "</tool_call>"))
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(
        vocab_size=len(template.tokenizer),
        eos_token_id=END,
        max_position_embeddings=positions,
        tie_word_embeddings=True,
        bos_token_id=None,
        **sizes,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder
