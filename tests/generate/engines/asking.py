"""Ways to ask an engine, and the same question answered by transformers alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from strop.generate.engines.torch import TorchEngine
from strop.machines import Completion
from strop.types import IntArray, Sampling
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


def talk(engine: Any, reference: Any, length: int) -> None:
    """Five conversations of three turns at once, which begin with `length` tokens; every logprob is checked."""

    async def one(key: int) -> None:
        context = prompts_of([length], seed=key)[0]
        for turn in range(3):
            completion = await engine.sample(context, Sampling(max_tokens=7), key)
            assert worst_difference(reference, context, completion) < 1e-4
            context = np.concatenate([context, completion.tokens, prompts_of([4], seed=100 * key + turn)[0]])

    async def all_talk() -> None:
        await asyncio.gather(*(one(key) for key in range(5)))

    asyncio.run(all_talk())
    assert engine.num_reused > 0


def worst_difference(reference: Any, prompt: IntArray, completion: Completion) -> float:
    """Largest error of the logprobs of a completion at temperature 1, against a full forward pass."""
    scores = reference_logprobs(reference, np.concatenate([prompt, completion.tokens])).numpy()
    want = scores[len(prompt) - 1 : -1][np.arange(len(completion.tokens)), completion.tokens]
    return float(np.abs(want - completion.logprobs).max())
