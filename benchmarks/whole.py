"""Whole weights that learn beside their engine on one GPU: how they are held, memory, speed, agreement, gradients.

    python benchmarks/whole.py [--model 7b] [--held 0] [--check 0.5b] [--rollouts 16] [--tokens 256] [--json]

Weights are random. The memory plan chooses how they are held (`--held` 18, 10 or 6 bytes for each says otherwise).
`peak_gib` is the most that this process ever held while completions were written and scored, steps were trained in
micro-batches of 8 x 1,024 tokens with the keys of those completions in place, and weights delivered; a step has
`--sequences` of them and its optimizer step in it. `gradient_error` is how far gradients of a smaller shape are from
those of transformers' modules in float32, as a share of their norm, all weights together; `gradient_error_18` is what
computing in bfloat16 alone makes of it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from adapters import gap, seconds, written
from machine import circumstances, output_arguments, publish, synchronize
from shapes import SHAPES, prepare
from training import groups_of

from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.launch.checks.gpu_memory_plan import Sharing
from strop.models.layers.eight_bit_linear import outline
from strop.models.torch_setup import gpu_memory
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.trainers.torch import TorchTrainer
from strop.weights.channels.memory import Memory

NEED = {"tokens_per_second": 8_000.0, "mean_absolute_difference": 1e-3, "gradient_error": 0.05}
_PROMPT, _SMALL, _LENGTH = 64, 8, 1024  # tokens of a prompt, and sequences and tokens of a micro-batch


def opened(folder: Path, arguments: argparse.Namespace) -> tuple[TorchTrainer, PagedEngine, Memory, float]:
    """All three, and the GiB that were planned."""
    is_gpu = torch.device(arguments.device).type == "cuda"
    longest, planned = arguments.tokens + _PROMPT, 0.0
    trainer = TorchTrainer(
        learning_rate=1e-6, device=arguments.device, fused="on", chunk=4096, max_tokens=_SMALL * _LENGTH,
        bytes_per_weight=arguments.held,
    )  # fmt: skip
    engine = PagedEngine(
        rows=arguments.rollouts, device=arguments.device, dtype="bfloat16" if is_gpu else "float32", context=longest,
        cache_tokens=arguments.rollouts * (longest + 16),
    )  # fmt: skip
    if is_gpu:
        sharing = Sharing(trainer, engine, outline(folder), gpu_memory(arguments.device)[1], _LENGTH)
        trainer.expect(sharing.room)
        planned = sharing.chosen.total / 2**30
    channel = Memory()
    trainer.open(folder, 0)
    channel.connect(trainer, [engine])
    engine.open(folder)
    trainer.settle()
    return trainer, engine, channel, planned


def trained(trainer: TorchTrainer, vocabulary: int, arguments: argparse.Namespace) -> tuple[float, float]:
    """Tokens a second of whole steps, and seconds of an optimizer step alone."""
    assert trainer._opened is not None
    groups = groups_of(np.random.default_rng(0), vocabulary, arguments.sequences, 1, 1, arguments.length - 1)
    batches, objective = pack(groups, TokenMean(), 0, trainer.max_tokens), Objective((Clip(),))

    def step() -> None:
        trainer.step([replace(batch) for batch in batches], objective)

    for _ in range(2):
        step()
    rate = arguments.sequences * arguments.length / seconds(step, trainer.device, arguments.steps)
    move = partial(trainer._opened.optimizer.step, 0.0, 1.0)  # over the gradients that are still there
    return rate, seconds(move, trainer.device, 2)


def measured(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    is_gpu = torch.device(arguments.device).type == "cuda"
    if is_gpu:
        torch.cuda.reset_peak_memory_stats()
    trainer, engine, channel, planned = opened(folder, arguments)
    assert trainer._opened is not None
    vocabulary = trainer._opened.model.config.vocab_size
    stream = np.random.default_rng(0)
    prompts = [stream.integers(1, vocabulary - 1, _PROMPT) for _ in range(arguments.rollouts)]

    async def everything() -> dict[str, Any]:
        await channel.publish(0)
        found = gap(trainer, prompts, await written(engine, prompts, arguments.tokens))
        rate, move = trained(trainer, vocabulary, arguments)
        delivery = []
        for step in range(1, 4):
            synchronize(arguments.device)
            start = time.perf_counter()
            await channel.publish(step)
            delivery.append(1e3 * (time.perf_counter() - start))
        return {
            "bytes_per_weight": float(trainer._opened.holding.total),  # type: ignore[union-attr]
            "is_checkpointed": float(trainer._opened.forward.is_checkpointed),  # type: ignore[union-attr]
            "max_tokens": float(trainer.max_tokens),
            "planned_gib": planned,
            "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if is_gpu else 0.0,
            "tokens_per_second": rate,
            "optimizer_seconds": move,
            "delivery_ms": statistics.median(delivery),
            "mean_absolute_difference": found["mean_absolute_difference"],
        }

    return asyncio.run(everything())


def gradient_errors(folder: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """Of all weights together, against float32 on transformers' own modules."""
    config = outline(folder).config
    groups = groups_of(
        np.random.default_rng(1), config.vocab_size, groups=4, siblings=4, prompt=32, written=arguments.length
    )
    found: dict[int, dict[str, torch.Tensor]] = {}
    narrow = "bfloat16" if torch.device(arguments.device).type == "cuda" else "float32"
    for held, dtype, fused in ((0, "float32", "off"), (18, narrow, "on"), (10, narrow, "on")):
        trainer = TorchTrainer(
            device=arguments.device, dtype=dtype, fused=fused, max_tokens=4096, bytes_per_weight=held or 18
        )
        trainer.open(folder, 0)
        batches = pack(groups, TokenMean(), 0, 4096)
        found[held] = {
            name: each.float().cpu() for name, each in trainer.gradient(batches, Objective((Reinforce(),))).items()
        }
        found[held]["model.embed_tokens.weight"][config.pad_token_id] = 0  # of which transformers takes no gradient
        del trainer
        gc.collect()
    return {
        "gradient_error": _apart(found[10], found[0]),
        "gradient_error_18": _apart(found[18], found[0]),
    }


def _apart(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    difference, norm = (
        sum(float(each.square().sum()) for each in tensors)
        for tensors in ([one[name] - other[name] for name in other], other.values())
    )
    return float((difference / norm) ** 0.5)


def table(found: dict[str, Any]) -> str:
    lines = ["| figure | found | wanted |", "|---|---|---|"]
    lines += [
        f"| {name} | {value:.4g} | {NEED.get(name, '')} |" for name, value in found.items() if isinstance(value, float)
    ]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="7b", choices=list(SHAPES))
    parser.add_argument("--folder", default="", help="of random weights that are there already")
    parser.add_argument("--check", default="0.5b", choices=list(SHAPES), help="the shape whose gradients are compared")
    parser.add_argument("--held", type=int, default=0, help="bytes for each weight; 0: as planned")
    parser.add_argument("--rollouts", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--sequences", type=int, default=32, help="of a step")
    parser.add_argument("--length", type=int, default=_LENGTH, help="of a sequence that is trained on")
    parser.add_argument("--steps", type=int, default=3)
    output_arguments(parser)
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch:
        errors = gradient_errors(prepare(arguments.check, Path(scratch), arguments.device), arguments)
        folder = (
            Path(arguments.folder) if arguments.folder else prepare(arguments.model, Path(scratch), arguments.device)
        )
        if torch.device(arguments.device).type == "cuda":
            torch.cuda.empty_cache()
        found = measured(folder, arguments) | errors
    result = {"benchmark": "whole", "model": arguments.model, **found}
    result["ratio"] = found["tokens_per_second"] / NEED["tokens_per_second"]
    publish(result | circumstances(arguments.device), table(found), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
