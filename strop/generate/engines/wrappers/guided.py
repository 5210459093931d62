"""Value-guided decoding of a frozen model, token by token (Q#, VAS).

Every prefix is recomputed for each candidate token: exact and slow, for measuring the effect of guidance.

Papers: q-sharp, vas
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import copy_weights, read_weights
from strop.generate.engines.sampling import draw
from strop.kernels.sampling.counter_random import as_key, uniforms
from strop.models.layers.scalar_head import Headed
from strop.models.loading.load_weights import read_model
from strop.models.model import parameters
from strop.roles import Engine, Guidance
from strop.types import FilePath, IntArray, Sampling
from strop.weights.fingerprint import fingerprint


@dataclass
class Guided(Engine):
    """Engine that samples from the model's top tokens reweighted by `rule`; logprobs are of the resulting distribution.

    `values` is the folder in which a run saved its value model (`checkpoints/step-N/values`).
    """

    values: FilePath  # folder of a saved value model
    rule: Guidance
    candidates: int = 20  # likeliest tokens that are judged
    device: str = "cpu"

    _base: Any = field(default=None, init=False, repr=False, compare=False)
    _judge: Headed | None = field(default=None, init=False, repr=False, compare=False)
    _ends: frozenset[int] = field(default=frozenset(), init=False, repr=False, compare=False)
    _aborted: set[int] = field(default_factory=set, init=False, repr=False, compare=False)
    _version: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise ConfigurationError(f"Guided needs candidates >= 1, got {self.candidates}")

    def open(self, model: Path) -> None:
        from transformers import GenerationConfig

        self._base = read_model(model, torch.float32).to(self.device).eval().requires_grad_(False)
        self._judge = Headed.open(model, 1, self.device)
        self._judge.load(Path(self.values) / self.rule.file)
        self._judge.body.set_attn_implementation("eager")
        named = GenerationConfig.from_model_config(self._base.config).eos_token_id
        if (Path(model) / "generation_config.json").is_file():
            named = GenerationConfig.from_pretrained(model).eos_token_id
        self._ends = frozenset([named] if isinstance(named, int) else named or ())

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self._aborted.discard(key)
        tokens, logprobs, stop = list[int](), list[float](), Stop.LENGTH
        while len(tokens) < sampling.max_tokens and stop is Stop.LENGTH:
            await asyncio.sleep(0)  # others may ask, or abort
            if key in self._aborted:
                stop = Stop.ABORTED
                break
            context = np.append(prompt, tokens).astype(np.int64)
            token, logprob = self._choose(context, sampling, key)
            tokens.append(token)
            logprobs.append(logprob)
            stop = Stop.STOP if token in self._ends else Stop.LENGTH
        versions = np.full(len(tokens), self._version, dtype=np.int64)
        return Completion(np.array(tokens, np.int64), np.array(logprobs, np.float32), versions, stop)

    def _choose(self, context: IntArray, sampling: Sampling, key: int) -> tuple[int, float]:
        scores = self.scores(context).unsqueeze(0)
        number = uniforms(np.array([as_key(key)]), np.array([len(context)]))
        plain = (
            np.array([sampling.temperature], np.float32),
            np.array([sampling.top_k]),
            np.array([sampling.top_p], np.float32),
        )
        chosen, logprob = draw(scores, *plain, number)
        return int(chosen[0]), float(logprob[0])

    @torch.no_grad()
    def scores(self, context: IntArray) -> Tensor:
        """Guided logits of the next token: [V]."""
        read = torch.from_numpy(context).to(self.device)
        base: Tensor = self._base(input_ids=read.unsqueeze(0), use_cache=False).logits[0, -1].float()
        candidates = base.topk(min(self.candidates, len(base))).indices  # [C]
        longer = torch.cat([read.expand(len(candidates), -1), candidates.unsqueeze(1)], 1)
        return self.rule(base, candidates, self.told(longer))

    @torch.no_grad()
    def told(self, contexts: Tensor) -> Tensor:
        """What the value model says after each context [C, T]: [C]."""
        if self._judge is None:
            raise ConfigurationError("Guided has no model yet: call open(model) first")
        states = self._judge.body.base_model(input_ids=contexts, use_cache=False).last_hidden_state[:, -1]
        found: Tensor = self._judge.head(states)[:, 0]
        return found

    async def load(self, version: WeightVersion) -> str:
        weights = parameters(self._base)
        copy_weights(read_weights(version.location, self._base), weights)
        self._version = version.step
        return fingerprint(weights)

    def forget(self) -> None:
        pass

    def abort(self, key: int) -> None:
        self._aborted.add(key)
