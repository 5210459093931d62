"""Ways to ask an engine, and the same question answered by transformers alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.backends import Completion, WeightVersion
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.types import IntArray, Sampling
from tests.tiny_models import VOCABULARY, reference_logprobs


def opened(folder: Path, rows: int = 8, **fields: Any) -> TorchEngine:
    engine = TorchEngine(rows=rows, **fields)
    engine.open(folder)
    return engine


def prompts_of(lengths: Sequence[int], seed: int = 0) -> list[IntArray]:
    """Random letters; the first ones differ, so that no two prompts share anything."""
    rng = np.random.default_rng(seed)
    return [np.append(4 + i, rng.integers(4, VOCABULARY, length - 1)) for i, length in enumerate(lengths)]


async def ask(
    engine: Any, prompts: Sequence[IntArray], sampling: Sampling, keys: Sequence[int] | None = None
) -> list[Completion]:
    """All at once; the keys are 0, 1, 2, ... where none are given."""
    keys = range(len(prompts)) if keys is None else keys
    return await asyncio.gather(*(engine.sample(p, sampling, k) for p, k in zip(prompts, keys, strict=True)))


def asked(engine: Any, prompts: Sequence[IntArray], sampling: Sampling) -> list[Completion]:
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


def expected(references: Sequence[Any], prompt: IntArray, completion: Completion) -> np.ndarray:
    """The logprob of each token under the weights of its version, everything before it read by those weights.

    Versions take turns with these weights.
    """
    context = np.concatenate([prompt, completion.tokens])
    scores = torch.stack([reference_logprobs(reference, context) for reference in references]).numpy()
    places = np.arange(len(prompt) - 1, len(context) - 1)
    return scores[completion.versions % len(references), places, completion.tokens]


def anything_at_once(
    engine: Any, weights: Sequence[dict[str, Tensor]], references: Sequence[Any], seed: int, loads: float = 0.1
) -> None:
    """Ten rollouts of three turns, among which weights are loaded and requests aborted; every logprob is checked."""
    rng, stems = np.random.default_rng(seed), prompts_of([40, 25, 7], seed)

    async def rollout(key: int) -> None:
        context = stems[key % 3][: rng.integers(1, 40)]
        for _ in range(3):
            probability = rng.random()
            if probability < loads:
                step = engine.version + 1
                await engine.load(WeightVersion(step, location=weights[step % 2]))
            elif probability < loads + 0.1:
                engine.abort(int(rng.integers(10)))
            completion = await engine.sample(context, Sampling(max_tokens=int(rng.integers(1, 9))), key)
            np.testing.assert_allclose(completion.logprobs, expected(references, context, completion), atol=1e-4)
            context = np.concatenate([context, completion.tokens, rng.integers(4, 40, 3)])[-50:]
            for _ in range(rng.integers(0, 30)):
                await asyncio.sleep(0)

    async def all_rollouts() -> None:
        await asyncio.gather(*(rollout(key) for key in range(10)))

    asyncio.run(all_rollouts())
    assert engine.version > 0


def stopped_at_a_string(engine: Any) -> tuple[Completion, int]:
    """A completion that ends at a text over two tokens, and how many tokens it has."""
    prompt = prompts_of([5])[0]
    free = asyncio.run(engine.sample(prompt, Sampling(max_tokens=40), 0))
    text = "".join(chr(ord("a") + t - 4) if 4 <= t < 30 else "#" for t in free.tokens)
    place = next(i for i in range(5, 39) if "#" not in text[i : i + 2] and text.find(text[i : i + 2]) == i)
    stop = ("~~", text[place : place + 2])
    stopped = asyncio.run(engine.sample(prompt, Sampling(max_tokens=40, stop=stop), 0))
    assert stopped.tokens.tolist() == free.tokens[: place + 2].tolist()
    return stopped, place + 2
