"""Engine and trainer compute the same bits in bfloat16: what was sampled is what is trained on, to the last sum.

Needs a GPU.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from strop.backends import Completion
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.training.pack import pack
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, IntArray, Message, Sampling, Turn
from strop.weights.channels.memory import Memory
from tests.training.tiny import make_rollout

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]

SIBLINGS = 4


def folder_of(path: Path, **shape: int) -> Path:
    """Weights wide enough that a rounding anywhere moves the logprobs."""
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=512, max_position_embeddings=1024, initializer_range=0.2, eos_token_id=1, **shape)
    LlamaForCausalLM(config).save_pretrained(path)
    return path


def prompts_of(seed: int = 0) -> list[IntArray]:
    stream = np.random.default_rng(seed)
    return [stream.integers(2, 512, int(stream.integers(5, 200))) for _ in range(12)]


async def asked(engine: PagedEngine, prompts: list[IntArray]) -> list[Completion]:
    each = [prompt for prompt in prompts for _ in range(SIBLINGS)]
    return list(await asyncio.gather(*(engine.sample(p, Sampling(max_tokens=100), key) for key, p in enumerate(each))))


def completions(folder: Path, prompts: list[IntArray], rows: int) -> list[Completion]:
    engine = PagedEngine(rows=rows, dtype="bfloat16", memory=0.05)
    engine.open(folder)
    return asyncio.run(asked(engine, prompts))


def connected(trainer: TorchTrainer, engine: PagedEngine, folder: Path) -> Memory:
    channel = Memory()
    trainer.open(folder, 0)
    channel.connect(trainer, [engine])
    engine.open(folder)
    return channel


def published(channel: Memory, engine: PagedEngine, prompts: list[IntArray]) -> list[Completion]:
    """Of an engine that has the trainer's weights."""

    async def everything() -> list[Completion]:
        await channel.publish(0)
        return await asked(engine, prompts)

    return asyncio.run(everything())


def gaps_of(
    trainer: TorchTrainer, prompts: list[IntArray], found: list[Completion], *names: str
) -> Iterator[list[Tensor]]:
    """Of every batch, how far the trainer's logprobs of each name lie from those that came with the tokens."""
    batches = pack(groups_of(prompts, found), None, 0, trainer.max_tokens)
    trainer.annotate(batches, frozenset(Logprobs(name) for name in names))
    for batch in batches:
        yield [(batch.logprobs[name] - batch.behavior_logprobs)[batch.trainable].abs() for name in names]


def groups_of(prompts: list[IntArray], found: list[Completion]) -> list[Group]:
    groups = []
    for number, prompt in enumerate(prompts):
        own = found[number * SIBLINGS : (number + 1) * SIBLINGS]
        turns = [Turn(prompt, each.tokens, each.logprobs, each.versions, Message("assistant", "")) for each in own]
        rollouts = [make_rollout(f"{number}/{i}", [turn], f"task-{number}") for i, turn in enumerate(turns)]
        groups.append(Group(number, rollouts[0].task, rollouts))
    return groups


@pytest.mark.parametrize(
    "shape",
    [
        {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 8,
         "num_attention_heads": 3, "num_key_value_heads": 1},
        {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 6,
         "num_attention_heads": 2, "num_key_value_heads": 2},
        {"hidden_size": 512, "intermediate_size": 8960, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 2},
    ],
    ids=["heads of 64", "heads of 128", "sums that a library would cut"],
)  # fmt: skip
def test_the_trainer_finds_the_logprobs_that_the_engine_gave(shape: dict[str, int], tmp_path: Path) -> None:
    folder, prompts = folder_of(tmp_path, **shape), prompts_of()
    trainer = TorchTrainer(device="cuda")
    trainer.open(folder, 0)
    for (gaps,) in gaps_of(trainer, prompts, completions(folder, prompts, rows=16), "proximal"):
        assert gaps.max() < 1e-4  # one sum that is rounded otherwise shows as 1e-2


def test_adapters_over_one_copy_of_the_weights(tmp_path: Path) -> None:
    """The engine adds the published adapters as the trainer does, and neither has a copy of what lies beside them."""
    shape = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 6}
    folder = folder_of(tmp_path, **shape, num_attention_heads=2, num_key_value_heads=2)
    trainer, engine, prompts = TorchTrainer(device="cuda", lora=8), PagedEngine(rows=16, memory=0.05), prompts_of()
    channel = connected(trainer, engine, folder)
    assert trainer._opened is not None and engine._model is trainer._opened.model
    for each in trainer._opened.optimizer.parameters.values():
        torch.nn.init.normal_(each, std=0.1)
    found = published(channel, engine, prompts)
    for gaps, moves in gaps_of(trainer, prompts, found, "proximal", "reference"):
        assert gaps.max() < 1e-4 and moves.mean() > 0.1


def test_what_else_is_in_the_batch_changes_nothing(tmp_path: Path) -> None:
    shape = {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 8}
    folder = folder_of(tmp_path, **shape, num_attention_heads=3, num_key_value_heads=1)
    prompts = prompts_of(1)
    crowded, alone = completions(folder, prompts, rows=48), completions(folder, prompts, rows=1)
    for one, other in zip(crowded, alone, strict=True):
        assert np.array_equal(one.tokens, other.tokens)
        assert np.allclose(one.logprobs, other.logprobs, atol=1e-5)
