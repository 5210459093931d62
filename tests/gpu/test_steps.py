"""Steps of the paged engine that write several tokens, or go through experts. Needs a GPU."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, MixtralConfig

from strop.backends import Completion
from strop.generate.engines.paged.draft_model import Draft
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.turn_ops import extended
from strop.training.pack import pack
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, IntArray, Message, Sampling, Turn
from tests.gpu.test_exact import folder_of
from tests.training.tiny import make_rollout

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
SMALL = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2}


def prompts_of(count: int) -> list[IntArray]:
    stream = np.random.default_rng(0)
    return [stream.integers(2, 512, int(stream.integers(5, 120))) for _ in range(count)]


def completions(engine: PagedEngine, folder: Path, prompts: list[IntArray], tokens: int) -> list[Completion]:
    engine.open(folder)

    async def everything() -> list[Completion]:
        sampling = Sampling(max_tokens=tokens)
        return list(await asyncio.gather(*(engine.sample(each, sampling, key) for key, each in enumerate(prompts))))

    return asyncio.run(everything())


@pytest.mark.parametrize("races", [False, True])
@pytest.mark.parametrize("count", [6, 20])  # of which tokens read keys one by one, or share what they read
def test_a_draft_changes_no_token(tmp_path: Path, count: int, races: bool) -> None:
    folder = folder_of(tmp_path, intermediate_size=512, **SMALL)
    prompts = prompts_of(count)
    alone = completions(PagedEngine(rows=24, memory=0.05, races=races), folder, prompts, 90)
    draft = Draft(tokens=3, every=2)
    guessed = completions(PagedEngine(rows=24, memory=0.05, draft=draft, races=races), folder, prompts, 90)
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
    written = completions(PagedEngine(rows=40, memory=0.05), tmp_path, prompts, 100)
    rollouts = []
    for number, (prompt, done) in enumerate(zip(prompts, written, strict=True)):
        empty = Turn(prompt, done.tokens[:0], done.logprobs[:0], done.versions[:0], Message("assistant", ""))
        told = replace(empty, tokens=done.tokens, logprobs=done.logprobs, versions=done.versions)
        told = replace(told, aux=extended(empty, done.aux, len(done.tokens)))
        rollouts.append(make_rollout(str(number), [told]))
    trainer = TorchTrainer(device="cuda", max_tokens=1024)  # of which the last micro-batch is small
    trainer.open(tmp_path, 0)
    batches = pack([Group(n, each.task, [each]) for n, each in enumerate(rollouts)], None, 0, trainer.max_tokens)
    trainer.annotate(batches, frozenset({Logprobs("proximal")}))
    for batch in batches:
        gaps = (batch.logprobs["proximal"] - batch.behavior_logprobs)[batch.trainable].abs()
        assert gaps.max() < 1e-4
