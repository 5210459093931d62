"""Steps of the paged engine that write several tokens, or go through experts. Needs a GPU."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, MixtralConfig

from strop.generate.engines.draft import Draft
from strop.generate.engines.paged import PagedEngine
from strop.generate.pieces import extended
from strop.kernels.decode import Plain, Sheet
from strop.machines import Completion
from strop.training.needs import Logprobs
from strop.training.pack import pack
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, IntArray, Message, Sampling, Turn
from tests.gpu.test_exact import folder_of
from tests.training.tiny import make_attempt

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
SMALL = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2}


def prompts_of(count: int) -> list[IntArray]:
    stream = np.random.default_rng(0)
    return [stream.integers(2, 512, int(stream.integers(5, 120))) for _ in range(count)]


def replies(engine: PagedEngine, folder: Path, prompts: list[IntArray], tokens: int) -> list[Completion]:
    engine.open(folder)

    async def everything() -> list[Completion]:
        sampling = Sampling(max_tokens=tokens)
        return list(await asyncio.gather(*(engine.sample(each, sampling, key) for key, each in enumerate(prompts))))

    return asyncio.run(everything())


def test_several_tokens_are_written_as_one_after_the_other() -> None:
    from strop.kernels.triton.decode import Kernels

    def sheet() -> Sheet:
        tokens, real = (torch.zeros(6, 9, dtype=each, device="cuda") for each in (torch.int32, torch.float32))
        ones, limits = (torch.tensor(each, dtype=torch.int32, device="cuda") for each in ([1] * 6, [9, 9, 9, 2, 9, 9]))
        is_active = torch.tensor([True] * 5 + [False], device="cuda")
        return Sheet(tokens, real, tokens.clone(), ones, limits, is_active, ones[:1] + 6, torch.tensor([8]).cuda())

    drawn = torch.arange(18, device="cuda").view(6, 3)
    sheets, slots = (sheet(), sheet()), torch.arange(6, device="cuda")
    counts = torch.tensor([3, 1, 3, 3, 2, 3], device="cuda")
    for each, operations in zip(sheets, (Kernels(), Plain()), strict=True):
        operations.write(each, slots, drawn, -drawn.float(), counts)
        operations.write(each, slots, drawn[:, 0], -drawn.float()[:, 0])
    for name in ("tokens", "logprobs", "versions", "lengths", "is_active"):
        assert torch.equal(*(getattr(each, name) for each in sheets)), name
    assert sheets[0].lengths.tolist() == [5, 3, 4, 2, 4, 1] and sheets[0].versions[0, 1] == 7  # 8 ends the third
    assert sheets[0].tokens[2, 1:5].tolist() == [6, 7, 8, 0] and sheets[0].is_active.tolist() == [1, 1, 0, 0, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_state_and_a_token_side_by_side(dtype: torch.dtype) -> None:
    from strop.kernels.triton.decode import Kernels

    torch.manual_seed(0)
    embedding, state = torch.randn(50, 96, device="cuda").to(dtype), torch.randn(5, 96, device="cuda") * 3
    tokens = torch.tensor([0, 49, 7, 7, 20], device="cuda")
    ours, plain = (each.pair(state, tokens, embedding, 1e-6) for each in (Kernels(), Plain()))
    torch.testing.assert_close(ours, plain, atol=1e-6 if dtype == torch.float32 else 0.02, rtol=0)


def test_a_draft_changes_no_token(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, intermediate_size=512, **SMALL)
    prompts = prompts_of(6)
    alone = replies(PagedEngine(rows=8, memory=0.05), folder, prompts, 90)
    draft = Draft(tokens=3, every=2)
    guessed = replies(PagedEngine(rows=8, memory=0.05, draft=draft), folder, prompts, 90)
    for one, other in zip(alone, guessed, strict=True):
        assert np.array_equal(one.tokens, other.tokens)
        assert np.allclose(one.logprobs, other.logprobs, atol=1e-5)
    assert draft.learn([])["draft/tokens_per_look"] >= 1


def test_experts_give_the_trainer_the_logprobs_that_the_engine_gave(tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape = {**SMALL, "vocab_size": 512, "intermediate_size": 192, "num_local_experts": 8, "num_experts_per_tok": 2}
    config = MixtralConfig(**shape, sliding_window=None, initializer_range=0.2, eos_token_id=1, bos_token_id=0)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    prompts = prompts_of(40)
    written = replies(PagedEngine(rows=40, memory=0.05), tmp_path, prompts, 100)
    attempts = []
    for number, (prompt, done) in enumerate(zip(prompts, written, strict=True)):
        empty = Turn(prompt, done.tokens[:0], done.logprobs[:0], done.versions[:0], Message("assistant", ""))
        told = replace(empty, tokens=done.tokens, logprobs=done.logprobs, versions=done.versions)
        told = replace(told, aux=extended(empty, done.aux, len(done.tokens)))
        attempts.append(make_attempt(str(number), [told]))
    trainer = TorchTrainer(device="cuda", max_tokens=1024)  # of which the last micro-batch is small
    trainer.open(tmp_path, 0)
    batches = pack([Group(n, each.task, [each]) for n, each in enumerate(attempts)], None, 0, trainer.max_tokens)
    trainer.annotate(batches, frozenset({Logprobs("proximal")}))
    for batch in batches:
        gaps = (batch.logprobs["proximal"] - batch.behavior_logprobs)[batch.trainable].abs()
        assert gaps.max() < 1e-4
