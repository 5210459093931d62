"""Legs on which a model is compared with transformers' own eager forward pass, and its speed.

For `strop check`: each leg is a name and the largest difference of a logprob in nats, or of a derivative over the
largest one. Sequences are long enough for the windows of a tiny twin, not for those of a model of full size.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.backends import EXPERTS, Completion
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.models.layers.attention import Packed
from strop.models.loading.load_weights import read_model
from strop.models.model import context_length, hidden_states, load_model, logits, probe
from strop.models.pictures import placeholders_of, without_placeholders
from strop.training.machine.forward import Forward
from strop.training.machine.packed_sequences import Sequences
from strop.types import IntArray, Sampling

LIMIT = 1e-3  # nats
LENGTHS = (37, 29, 61)  # of sequences that share nothing
ROWS, _PROMPT = 8, 64  # of the measured speed
_SECONDS = 2.0  # of a measurement, about


@dataclass(frozen=True)
class Leg:
    """One comparison with transformers."""

    name: str
    difference: float

    @property
    def is_right(self) -> bool:
        return self.difference <= LIMIT  # a NaN is not


def legs(folder: Path) -> Iterator[Leg]:
    """All comparisons of a float32 model that the loader takes; what it refuses is its ModelError."""
    model, engine = load_model(folder), TorchEngine(rows=4)
    engine.open(folder)
    theirs = read_model(folder, torch.float32, "eager").eval()
    words = words_of(model, 400)
    yield Leg("packed sequences", packed_difference(model, theirs, LENGTHS))
    yield from _trained(model, theirs, words)
    yield from asyncio.run(_sampled(engine, theirs, words))


def keeps_routes(folder: Path) -> bool:
    """Whether completions say which experts their tokens went through."""
    engine = TorchEngine(rows=1)
    engine.open(folder)
    return EXPERTS in asyncio.run(engine.sample(np.arange(3, 9), Sampling(max_tokens=2), 0)).aux


def words_of(model: Any, count: int) -> IntArray:
    """Tokens from all over the vocabulary, in no order; none stands for a picture."""
    found = probe(model, count).cpu().numpy()
    found = np.where(np.isin(found, placeholders_of(model.config)), found[0], found)
    return np.random.default_rng(0).permutation(found)


@torch.no_grad()
def packed_difference(ours: Any, theirs: Any, lengths: Sequence[int]) -> float:
    """Largest difference of logprobs between packed sequences and each by itself."""
    tokens = torch.from_numpy(words_of(ours, sum(lengths)))
    device = ours.get_input_embeddings().weight.device
    positions = torch.cat([torch.arange(length, device=device) for length in lengths])
    states = hidden_states(ours, tokens.to(device), positions, Packed(lengths, device))
    told = torch.log_softmax(logits(ours, states).float(), -1).cpu()
    each = [whole_logprobs(theirs, part.numpy()) for part in torch.split(tokens, list(lengths))]
    difference = (told - torch.cat(each)).abs()
    never = [token for token in placeholders_of(ours.config) if token < difference.shape[-1]]
    return float(difference.index_fill(-1, torch.tensor(never, dtype=torch.long), 0.0).max())


def whole_logprobs(model: Any, tokens: IntArray) -> Tensor:
    """Of one sequence by transformers alone, without a cache: [T, V]."""
    given = torch.from_numpy(tokens)[None].to(model.get_input_embeddings().weight.device)
    said = without_placeholders(model(input_ids=given, use_cache=False).logits[0].float(), model.config)
    return torch.log_softmax(said, -1).cpu()


def _trained(ours: Any, theirs: Any, words: IntArray) -> Iterator[Leg]:
    """Three siblings whose prompt is computed once: logprobs, and derivatives of their sum."""
    prompt, ends = words[:31], (words[40:57], words[60:84], words[90:101])
    parts = [np.concatenate([prompt, end]) for end in ends]
    lengths = [len(part) for part in parts]
    tokens = torch.from_numpy(np.concatenate(parts))
    layout = Sequences(tokens, torch.cat([torch.arange(n) for n in lengths]), lengths, "cpu")
    states = layout.computed(ours, Forward("cpu", "float32", 1024, "auto").fast_path(ours))
    starts = np.cumsum(lengths) - lengths
    rows = torch.cat([torch.arange(start + 1, start + n) for start, n in zip(starts.tolist(), lengths, strict=True)])
    told = torch.log_softmax(logits(ours, states.index_select(0, layout.before(rows))).float(), -1)
    told = told.gather(1, tokens[rows, None])
    due = torch.cat([_of_tokens(theirs, part) for part in parts])[:, None]
    yield Leg("shared prefixes", float((told - due).detach().abs().max()))
    told.sum().backward()  # type: ignore[no-untyped-call]
    due.sum().backward()  # type: ignore[no-untyped-call]
    yield Leg("gradient", _gradient_difference(ours, theirs))


def _of_tokens(model: Any, tokens: IntArray) -> Tensor:
    """Logprobs of all but the first token: [T - 1]."""
    return whole_logprobs(model, tokens)[:-1].gather(1, torch.from_numpy(tokens[1:, None])).squeeze(1)


def _gradient_difference(ours: Any, theirs: Any) -> float:
    """Over the largest derivative; a weight that only one of both reads counts in full."""
    due = {name: each.grad for name, each in theirs.named_parameters() if each.grad is not None}
    told = {name: each.grad for name, each in ours.named_parameters() if each.grad is not None}
    largest = max(float(each.abs().max()) for each in due.values())
    worst = max(_distance(name, told, due) for name in {*told, *due})
    return worst / max(largest, 1e-30)


def _distance(name: str, told: Mapping[str, Tensor], due: Mapping[str, Tensor]) -> float:
    one, other = told.get(name), due.get(name)
    if one is None or other is None:
        return float((other if one is None else one).abs().max())  # type: ignore[union-attr]
    return float((one - other).abs().max())


async def _sampled(engine: TorchEngine, theirs: Any, words: IntArray) -> list[Leg]:
    """What the engine says of the tokens it draws: alone, after a turn, and from the middle of a completion."""
    first, second = words[110:147], words[150:171]

    async def differences(prompts: Sequence[IntArray], key: int) -> tuple[float, list[Completion]]:
        asked = [engine.sample(each, Sampling(max_tokens=20), key + i) for i, each in enumerate(prompts)]
        answers = await asyncio.gather(*asked)
        return max(_off(theirs, *each) for each in zip(prompts, answers, strict=True)), answers

    begun, written = await differences([first, second, first], 0)
    whole = [np.concatenate([prompt, each.tokens]) for prompt, each in zip((first, second), written[:2], strict=True)]
    gone_on, _ = await differences([np.concatenate([each, words[180:187]]) for each in whole], 0)
    forked, _ = await differences([whole[0][: len(first) + 9], whole[0][: len(first) + 9]], 10)
    return [Leg("token by token", begun), Leg("second turn", gone_on), Leg("fork", forked)]


@torch.no_grad()
def _off(model: Any, prompt: IntArray, answer: Completion) -> float:
    due = _of_tokens(model, np.concatenate([prompt, answer.tokens]))[len(prompt) - 1 :]
    return float(np.abs(due.numpy() - answer.logprobs).max(initial=0.0))


def speed(folder: Path, model: Any) -> tuple[float, float]:
    """Tokens a second of the engine, and of a training pass forward and backward."""
    engine = TorchEngine(rows=ROWS)
    engine.open(folder)
    length = min(2 * _PROMPT, context_length(model))
    words = words_of(model, length)
    sampled = asyncio.run(_sampled_per_second(engine, [np.roll(words, row)[: length // 2] for row in range(ROWS)]))
    tokens = torch.from_numpy(np.concatenate([np.roll(words, row) for row in range(ROWS)]))
    layout = Sequences(tokens, torch.arange(length).repeat(ROWS), [length] * ROWS, "cpu")
    fast_path, seconds = Forward("cpu", "float32", 1024, "auto").fast_path(model), list[float]()
    while not seconds or (sum(seconds) < _SECONDS and len(seconds) < 5):
        begun = time.perf_counter()
        layout.computed(model, fast_path).square().sum().backward()  # type: ignore[no-untyped-call]
        seconds.append(time.perf_counter() - begun)
    return sampled, len(tokens) / min(seconds)


async def _sampled_per_second(engine: TorchEngine, prompts: Sequence[IntArray]) -> float:
    """Of rounds that double until they take long enough."""
    count = 2
    while True:
        begun, before = time.perf_counter(), engine.num_generated
        asked = [engine.sample(each, Sampling(max_tokens=count), row) for row, each in enumerate(prompts)]
        await asyncio.gather(*asked)
        seconds = time.perf_counter() - begun
        if seconds > _SECONDS / 4 or count >= 64:
            return (engine.num_generated - before) / seconds
        count *= 2
