"""Ways to ask an engine, and the same question answered by transformers alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from strop.generate.engines.torch import TorchEngine
from strop.types import Completion, IntArray, Sampling
from tests.models import VOCABULARY, reference_logprobs


def opened(folder: Path, rows: int = 8, **fields: Any) -> TorchEngine:
    engine = TorchEngine(rows=rows, **fields)
    engine.open(folder)
    return engine


def prompts_of(lengths: Sequence[int], seed: int = 0) -> list[IntArray]:
    """Random letters; the first ones differ, so that no two prompts share anything."""
    rng = np.random.default_rng(seed)
    return [np.append(4 + i, rng.integers(4, VOCABULARY, length - 1)) for i, length in enumerate(lengths)]


async def ask(
    engine: TorchEngine, prompts: Sequence[IntArray], sampling: Sampling, keys: Sequence[int] | None = None
) -> list[Completion]:
    """All at once; the keys are 0, 1, 2, ... where none are given."""
    keys = range(len(prompts)) if keys is None else keys
    return await asyncio.gather(*(engine.sample(p, sampling, k) for p, k in zip(prompts, keys, strict=True)))


def asked(engine: TorchEngine, prompts: Sequence[IntArray], sampling: Sampling) -> list[Completion]:
    return asyncio.run(ask(engine, prompts, sampling))


def worst_difference(reference: Any, prompt: IntArray, completion: Completion) -> float:
    """Largest error of the logprobs of a completion at temperature 1, against a full forward pass."""
    scores = reference_logprobs(reference, np.concatenate([prompt, completion.tokens])).numpy()
    want = scores[len(prompt) - 1 : -1][np.arange(len(completion.tokens)), completion.tokens]
    return float(np.abs(want - completion.logprobs).max())
