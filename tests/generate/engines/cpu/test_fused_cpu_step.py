"""The whole step in one call against the same step in parts, and bits that depend on nothing but tokens and weights."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.backends import Completion, Stop, WeightVersion
from strop.generate.engines.cpu.fused_cpu_step import MOST_WEIGHTS, WholeStep, whole_step
from strop.generate.engines.wrappers.chunked import Chunked
from strop.kernels.cpu import build
from strop.models.model import load_model
from strop.types import IntArray, Sampling
from tests.generate.engines.asking import asked, opened, prompts_of, worst_difference
from tests.generate.engines.test_compiled import FAMILIES, compiled, in_parts
from tests.tiny_models import END, load_reference, save_tiny_model

LONG = Sampling(max_tokens=40)
KINDS = (
    LONG,
    replace(LONG, temperature=0.6),
    replace(LONG, temperature=0.0),
    replace(LONG, top_k=5),
    replace(LONG, top_p=0.8, temperature=1.3),
    replace(LONG, max_tokens=3),
)

pytestmark = pytest.mark.skipif(build.library("step") is None, reason="no compiler")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    make = partial(save_tiny_model, head_dim=16)
    return {family: make(tmp_path_factory.mktemp(family), family) for family in FAMILIES}


def bits(completion: Completion) -> tuple[bytes, bytes, str]:
    return completion.tokens.tobytes(), completion.logprobs.tobytes(), completion.stop.name


def siblings(lengths: list[int], count: int) -> list[IntArray]:
    return [prompt for prompt in prompts_of(lengths) for _ in range(count)]


def mixed(engine: object, prompts: list[IntArray], kinds: tuple[Sampling, ...] = KINDS) -> list[Completion]:
    async def ask() -> list[Completion]:
        pairs = enumerate(prompts)
        return await asyncio.gather(*(engine.sample(p, kinds[k % len(kinds)], k) for k, p in pairs))  # type: ignore[attr-defined]

    return asyncio.run(ask())


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_and_logprobs_are_those_of_the_step_in_parts(folders: dict[str, Path], family: str) -> None:
    prompts = siblings([3, 21, 30, 17], 6)
    whole, parts = compiled(folders[family], rows=9), in_parts(folders[family], rows=9)
    for one, other in zip(mixed(whole, prompts), mixed(parts, prompts), strict=True):
        assert (one.tokens.tolist(), one.stop) == (other.tokens.tolist(), other.stop)
        assert np.allclose(one.logprobs, other.logprobs, atol=1e-5)
    assert whole.num_generated == parts.num_generated


def test_bits_do_not_depend_on_who_else_is_there_nor_whose_keys_are_read(folders: dict[str, Path]) -> None:
    """Few rows and many siblings: who shared its first keys ends, and its row is taken by somebody else meanwhile."""
    random = np.random.default_rng(0)
    trunk, prompts = prompts_of([40])[0], list[IntArray]()
    for _ in range(36):  # they branch off everywhere, so that rows lend to rows that lend
        branch = prompts[int(random.integers(len(prompts)))] if prompts and random.random() < 0.7 else trunk
        shared = int(random.integers(1, len(branch)))
        prompts.append(np.concatenate([branch[:shared], random.integers(4, 40, int(random.integers(1, 20)))]))
    kinds = tuple(replace(LONG, max_tokens=int(count)) for count in random.integers(1, 30, 7))
    together = mixed(compiled(folders["llama"], rows=5), prompts, kinds)
    alone = compiled(folders["llama"], rows=1)
    for key, (prompt, completion) in enumerate(zip(prompts, together, strict=True)):
        alone.forget()
        assert bits(asyncio.run(alone.sample(prompt, kinds[key % len(kinds)], key))) == bits(completion)


def test_a_completion_in_pieces_has_the_same_bits(folders: dict[str, Path]) -> None:
    prompts = siblings([5, 18], 3)
    whole = asked(compiled(folders["qwen3"], rows=4), prompts, LONG)
    engine = Chunked(inner=compiled(folders["qwen3"], rows=2), tokens=7)
    for one, other in zip(whole, mixed(engine, prompts, (LONG,)), strict=True):
        assert bits(one) == bits(other)


def test_the_host_looks_in_when_a_row_ends_and_every_few_steps(folders: dict[str, Path]) -> None:
    engine = compiled(folders["llama"], rows=4)
    looks, step = list[int](), engine._decoder.step

    def counted(*arguments: object) -> IntArray:
        looks.append(engine.num_generated)
        return step(*arguments)  # type: ignore[arg-type]

    engine._decoder.step = counted  # type: ignore[method-assign, assignment]
    found = asked(engine, prompts_of([4, 4, 4]), LONG)
    ends = {len(each.tokens) for each in found}
    assert any(each.tokens[-1] == END for each in found)
    assert len(looks) <= 1 + max(ends) // 8 + len(ends) < max(ends)


def test_new_weights_are_those_sampled_from(folders: dict[str, Path], tmp_path: Path) -> None:
    engine, other = compiled(folders["llama"], rows=3), save_tiny_model(tmp_path, "llama", seed=7, head_dim=16)
    asked(engine, prompts_of([6, 9]), LONG)
    asyncio.run(engine.load(WeightVersion(1, "", str(other))))
    for prompt, completion in zip(prompts_of([6, 9]), asked(engine, prompts_of([6, 9]), LONG), strict=True):
        assert worst_difference(load_reference(other), prompt, completion) < 1e-4
        assert set(completion.versions.tolist()) == {1}


def test_large_models_are_multiplied_by_torch(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(folders["llama"])
    assert isinstance(whole_step(model), WholeStep)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count < MOST_WEIGHTS
    monkeypatch.setattr("strop.generate.engines.cpu.fused_cpu_step.MOST_WEIGHTS", count - 1)
    assert whole_step(model) is None
    assert not isinstance(opened(folders["llama"])._decoder._forward, WholeStep)


def test_a_stop_string_ends_a_completion_at_once(folders: dict[str, Path]) -> None:
    engine, prompt = compiled(folders["llama"], rows=3), prompts_of([5])[0]
    free = asyncio.run(engine.sample(prompt, LONG, 0)).tokens.tolist()
    letters = [token for token in free if 4 <= token < 30]
    place = free.index(letters[len(letters) // 2])
    stopped = asyncio.run(engine.sample(prompt, replace(LONG, stop=(chr(ord("a") + free[place] - 4),)), 0))
    assert (stopped.tokens.tolist(), stopped.stop) == (free[: place + 1], Stop.STOP)


def test_threads_share_the_rows_and_change_no_bit(tmp_path: Path) -> None:
    """The model is so large that twelve rows are more than one thread takes."""
    folder = save_tiny_model(tmp_path, "qwen2", spread=5.0, head_dim=16, hidden_size=128, intermediate_size=1024)
    prompts, before, found = siblings([9, 33, 18], 4), torch.get_num_threads(), []
    short = tuple(replace(kind, max_tokens=6) for kind in KINDS)
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append([bits(each) for each in mixed(compiled(folder, rows=12), prompts, short)])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]
