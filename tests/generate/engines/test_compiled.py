"""The compiled step against transformers' own forward pass: all lengths, shared prompts, grown memory."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from strop.errors import NumericsError
from strop.generate.engines.cpu.block_step import BlockStep
from strop.generate.engines.cpu.compiled_llama import compiled_llama
from strop.generate.engines.cpu.decoder import Decoder
from strop.generate.engines.cpu.fused_cpu_step import WholeStep
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.kernels.cpu import build
from strop.models.model import load_model
from strop.types import Sampling
from tests.generate.engines.asking import ask, asked, opened, prompts_of, talk, worst_difference
from tests.tiny_models import load_reference, save_tiny_model

FAMILIES = ("llama", "qwen2", "qwen3")
LONG = Sampling(max_tokens=30)

pytestmark = pytest.mark.skipif(build.library("step") is None, reason="no compiler")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    make = partial(save_tiny_model, head_dim=16, eos_token_id=None)
    return {family: make(tmp_path_factory.mktemp(family), family) for family in FAMILIES}


def compiled(folder: Path, rows: int, **fields: Any) -> TorchEngine:
    engine = opened(folder, rows=rows, **fields)
    assert isinstance(engine._decoder._forward, WholeStep)
    return engine


def in_parts(folder: Path, rows: int) -> TorchEngine:
    """The step of larger models: torch multiplies, and draws."""
    engine = opened(folder, rows=rows)
    forward = compiled_llama(engine._model)
    assert forward is not None
    engine._decoder = Decoder(engine._model, forward, rows, 8192)
    return engine


@pytest.mark.parametrize("family", FAMILIES)
def test_logprobs_are_those_of_a_full_forward_pass(folders: dict[str, Path], family: str) -> None:
    reference = load_reference(folders[family])
    prompts = prompts_of([3, 9, 30, 1, 17, 22, 5, 9, 40, 2, 16, 15])
    completions = asked(compiled(folders[family], rows=5), prompts, LONG)
    assert max(len(p) + len(c.tokens) for p, c in zip(prompts, completions, strict=True)) > 64  # memory has grown
    for prompt, completion in zip(prompts, completions, strict=True):
        assert worst_difference(reference, prompt, completion) < 1e-4


@pytest.mark.parametrize("length", [2, 15, 16, 17, 18, 33])
def test_siblings_share_a_prompt_of_any_length(folders: dict[str, Path], length: int) -> None:
    reference = load_reference(folders["llama"])
    engine = compiled(folders["llama"], rows=4)
    prompt = prompts_of([length])[0]
    for completion in asked(engine, [prompt] * 4, LONG) + asked(engine, [prompt] * 3, LONG):
        assert worst_difference(reference, prompt, completion) < 1e-4
    assert engine.num_prefilled == length + 6  # the last token of a prompt is computed for each


def test_several_turns_go_on_with_the_same_distribution(folders: dict[str, Path]) -> None:
    reference = load_reference(folders["qwen3"])
    engine = compiled(folders["qwen3"], rows=3)

    talk(engine, reference, 6)


def test_a_request_gives_the_same_alone_and_in_a_full_batch(folders: dict[str, Path]) -> None:
    prompts = prompts_of([4, 19, 11, 2, 33, 7, 12, 5])
    together = asked(compiled(folders["llama"], rows=3), prompts, LONG)
    single = compiled(folders["llama"], rows=1)
    for key, prompt in enumerate(prompts):
        single.forget()
        alone = asyncio.run(single.sample(prompt, LONG, key))
        assert alone.tokens.tolist() == together[key].tokens.tolist()
        assert alone.logprobs.tobytes() == together[key].logprobs.tobytes()


def test_the_same_questions_give_the_same_bits_with_any_number_of_threads(folders: dict[str, Path]) -> None:
    prompts = prompts_of([4, 19, 11, 2, 33, 7])
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append([c.logprobs.tobytes() for c in asked(in_parts(folders["llama"], rows=4), prompts, LONG)])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_a_sliding_window_is_kept_to(tmp_path: Path) -> None:
    folder = save_tiny_model(
        tmp_path,
        "qwen2",
        head_dim=16,
        use_sliding_window=True,
        sliding_window=5,
        max_window_layers=1,
        eos_token_id=None,
    )
    reference = load_reference(folder)
    prompts = prompts_of([3, 20, 33])
    for prompt, completion in zip(prompts, asked(compiled(folder, rows=3), prompts, LONG), strict=True):
        assert worst_difference(reference, prompt, completion) < 1e-4


def test_weights_that_are_not_finite_are_told(folders: dict[str, Path]) -> None:
    engine = compiled(folders["llama"], rows=2)
    with torch.no_grad():
        engine._model.model.layers[0].mlp.up_proj.weight[0, 0] = float("nan")
    with pytest.raises(NumericsError, match="not finite"):
        asyncio.run(ask(engine, prompts_of([4, 4]), LONG))


def test_what_the_compiled_step_cannot_do_is_left_to_others(tmp_path: Path) -> None:
    assert compiled_llama(load_model(save_tiny_model(tmp_path / "small", "llama", head_dim=8))) is None
    assert compiled_llama(load_model(save_tiny_model(tmp_path / "gemma", "gemma"))) is None
    assert compiled_llama(load_model(save_tiny_model(tmp_path / "llama", "llama", head_dim=16)).double()) is None


def test_without_a_compiler_engines_go_on(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = prompts_of([5, 20])
    quick = asked(compiled(folders["llama"], rows=2), prompts, LONG)
    for module in ("decode", "step"):
        monkeypatch.setattr(f"strop.kernels.cpu.{module}.library", lambda name: None)
    engine = opened(folders["llama"], rows=2)
    assert isinstance(engine._decoder._forward, BlockStep)
    for one, other in zip(quick, asked(engine, prompts, LONG), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()


def test_a_compiler_that_fails_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for compiler in ("false", str(tmp_path / "nowhere")):
        monkeypatch.setenv("CC", compiler)
        build.library.cache_clear()
        assert build.library("step") is None
    build.library.cache_clear()
