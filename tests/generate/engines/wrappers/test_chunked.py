"""Pieces of a completion are what one request would have written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError
from strop.generate.engines.wrappers.chunked import Chunked
from strop.models.model import load_model, parameters
from strop.types import Sampling
from strop.weights.fingerprint import fingerprint
from tests.generate.engines.asking import opened, prompts_of, worst_difference
from tests.tiny_models import CONTEXT, load_reference, save_tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("llama"), "llama")


def completions(engine: Chunked, count: int, sampling: Sampling) -> list[Completion]:
    async def ask() -> list[Completion]:
        prompts = prompts_of([5 + i for i in range(count)])
        return await asyncio.gather(*(engine.sample(p, sampling, i) for i, p in enumerate(prompts)))

    return asyncio.run(ask())


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_pieces_are_what_one_request_would_have_written(folder: Path, size: int) -> None:
    sampling = Sampling(max_tokens=20)
    whole = completions(Chunked(opened(folder), 1000), 12, sampling)
    pieces = completions(Chunked(opened(folder), size), 12, sampling)
    assert any(one.stop is Stop.STOP for one in whole) and any(one.stop is Stop.LENGTH for one in whole)
    for one, other in zip(whole, pieces, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist() and one.stop is other.stop
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)


def test_the_end_of_the_context_ends_a_completion(folder: Path) -> None:
    (completion,) = completions(Chunked(opened(folder), 8), 1, Sampling(max_tokens=10 * CONTEXT, temperature=0.0))
    assert completion.stop in (Stop.LENGTH, Stop.STOP) and len(completion.tokens) <= CONTEXT


def test_logprobs_are_exact_across_a_cut_with_new_weights(folder: Path, tmp_path: Path) -> None:
    """Each piece is written by one version, and its logprobs are those of that version."""
    other = save_tiny_model(tmp_path / "other", "llama", seed=1)
    weights = parameters(load_model(other))
    engine = Chunked(opened(folder), 4)
    (prompt,) = prompts_of([6])

    async def ask() -> Completion:
        completion = asyncio.create_task(engine.sample(prompt, Sampling(max_tokens=16, temperature=1.0), 3))
        while not engine.inner.num_generated >= 6:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        await engine.load(WeightVersion(1, fingerprint(weights), weights))
        return await completion

    completion = asyncio.run(ask())
    assert sorted(set(completion.versions.tolist())) == [0, 1]
    cut = int((completion.versions == 0).sum())
    before = Completion(completion.tokens[:cut], completion.logprobs[:cut], completion.versions[:cut], Stop.LENGTH)
    after = Completion(completion.tokens[cut:], completion.logprobs[cut:], completion.versions[cut:], completion.stop)
    assert worst_difference(load_reference(folder), prompt, before) < 1e-4
    assert worst_difference(load_reference(other), np.concatenate([prompt, before.tokens]), after) < 1e-4


def test_an_abort_between_two_pieces_is_heard(folder: Path) -> None:
    engine = Chunked(opened(folder), 2)
    (prompt,) = prompts_of([6])

    async def ask() -> Completion:
        completion = asyncio.create_task(engine.sample(prompt, Sampling(max_tokens=60), 1))
        while engine.inner.num_generated < 2:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        engine.abort(1)
        return await completion

    completion = asyncio.run(ask())
    assert completion.stop is Stop.ABORTED and len(completion.tokens) < 60


def test_a_piece_has_a_size() -> None:
    with pytest.raises(ConfigurationError, match="got 0"):
        Chunked(opened, 0)  # type: ignore[arg-type]
