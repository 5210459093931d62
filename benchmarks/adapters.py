"""A trainer of adapters and its engine on one GPU, over one copy of the weights: memory, speed, delivery, agreement.

    python benchmarks/adapters.py [--model 7b] [--rank 32] [--base nf4] [--rollouts 16] [--tokens 1024]
        [--prompt 64] [--length 1024] [--sequences 8 16] [--json]

Weights are random, and so are the adapters, so that they act. `peak_gib` is the most that this process ever held while
`--rollouts` completions of `--tokens` tokens were written and scored, and micro-batches of 8 x 1,024 tokens trained on
with the keys of those completions in place; `tokens_per_second` is training where memory is free: micro-batches of 16 x
1,024 tokens of which everything is kept. `ratio` is the peak that is wanted over the one that was found. Long contexts:
`--rollouts 4 --prompt 28672 --tokens 4096 --length 32768 --sequences 1 1`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import circumstances, output_arguments, publish, synchronize
from mismatch import figures, grouped
from shapes import SHAPES, prepare
from training import groups_of

from strop.backends import Completion
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.training.losses.clip import Clip
from strop.training.machine.lora import learning
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import IntArray, Sampling
from strop.weights.channels.memory import Memory
from strop.weights.shared_base_weights import Shared

NEED = {"tokens_per_second": 16_000.0, "delivery_ms": 50.0, "mean_absolute_difference": 1e-5}
_PEAK = {"plain": 24.0, "nf4": 16.0}  # GiB


def opened(folder: Path, arguments: argparse.Namespace) -> tuple[TorchTrainer, PagedEngine, Memory]:
    is_gpu = torch.device(arguments.device).type == "cuda"
    dtype, longest = "bfloat16" if is_gpu else "float32", arguments.tokens + arguments.prompt
    trainer = TorchTrainer(
        learning_rate=1e-5, lora=arguments.rank, device=arguments.device, fused="on", chunk=1024,
        max_tokens=arguments.sequences[0] * arguments.length, checkpointing="on", base=arguments.base,
    )  # fmt: skip
    engine = PagedEngine(
        rows=arguments.rollouts, device=arguments.device, dtype=dtype, context=longest,
        cache_tokens=arguments.rollouts * (longest + 16),
    )  # fmt: skip
    channel = Memory()
    trainer.open(folder, 0)
    channel.connect(trainer, [engine])
    engine.open(folder)
    trainer.settle()
    return trainer, engine, channel


def spread(trainer: TorchTrainer) -> None:
    """Adapters that act: those of a fresh trainer begin as nothing."""
    assert trainer._opened is not None
    generator = torch.Generator(trainer.device).manual_seed(0)
    with torch.no_grad():
        for each in learning(trainer._opened.model).values():
            each.copy_(torch.randn(each.shape, generator=generator, device=trainer.device) * 0.02)


async def written(engine: PagedEngine, prompts: list[IntArray], tokens: int) -> list[Completion]:
    sampling = Sampling(max_tokens=tokens)
    return list(await asyncio.gather(*(engine.sample(each, sampling, key) for key, each in enumerate(prompts))))


def gap(trainer: TorchTrainer, prompts: list[IntArray], found: list[Completion]) -> dict[str, Any]:
    batches = pack(grouped(prompts, found, 1), None, 0, trainer.max_tokens)
    trainer.annotate(batches, frozenset({Logprobs("proximal")}))
    ours = torch.cat([each.logprobs["proximal"][each.trainable].float().cpu() for each in batches])
    theirs = torch.cat([each.behavior_logprobs[each.trainable].float().cpu() for each in batches])
    return figures((ours - theirs).numpy(), theirs.numpy())


def seconds(work: Callable[[], object], device: str, count: int) -> float:
    """Of the median."""
    found: list[float] = []
    for _ in range(count):
        synchronize(device)
        start = time.perf_counter()
        work()
        synchronize(device)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def trained(trainer: TorchTrainer, vocabulary: int, sequences: int, arguments: argparse.Namespace) -> float:
    """Tokens a second of steps of one micro-batch."""
    length = arguments.length
    groups = groups_of(np.random.default_rng(0), vocabulary, sequences, 1, prompt=1, written=length - 1)
    batches, objective = pack(groups, TokenMean(), 0, sequences * length), Objective((Clip(),))

    def step() -> None:
        trainer.step([replace(batch) for batch in batches], objective)

    for _ in range(2):
        step()
    found: float = sequences * length / seconds(step, trainer.device, arguments.steps)
    if arguments.profile:
        profiled(step, arguments.profile)
    return found


def profiled(step: Callable[[], None], count: int) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        step()
        torch.cuda.synchronize()
    rows = [row for row in profiler.key_averages() if str(row.device_type).endswith("CUDA")]
    rows.sort(key=lambda row: -row.self_device_time_total)
    print(f"{sum(row.self_device_time_total for row in rows) / 1e3:.1f} ms in kernels", file=sys.stderr)
    for row in rows[:count]:
        print(f"{row.self_device_time_total / 1e3:9.2f} ms {row.count:6d} x  {row.key[:100]}", file=sys.stderr)


def measured(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    is_gpu = torch.device(arguments.device).type == "cuda"
    if is_gpu:  # or what the weights were made in would count
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    trainer, engine, channel = opened(folder, arguments)
    assert trainer._opened is not None
    shared = channel._shared
    assert isinstance(shared, Shared), "the engine reads weights of its own"
    vocabulary = trainer._opened.model.config.vocab_size
    stream = np.random.default_rng(0)
    prompts = [stream.integers(1, vocabulary - 1, arguments.prompt) for _ in range(arguments.rollouts)]

    async def everything() -> dict[str, Any]:
        await channel.publish(0)
        plain = gap(trainer, prompts, await written(engine, prompts, arguments.tokens // 4))
        spread(trainer)
        await channel.publish(1)
        synchronize(arguments.device)
        start = time.perf_counter()
        completions = await written(engine, prompts, arguments.tokens)
        rate = arguments.rollouts * arguments.tokens / (time.perf_counter() - start)
        found = gap(trainer, prompts, completions)
        small = trained(trainer, vocabulary, arguments.sequences[0], arguments)
        peak = torch.cuda.max_memory_allocated() / 2**30 if is_gpu else 0.0
        delivery = []
        for step in range(2, 7):
            synchronize(arguments.device)
            start = time.perf_counter()
            await channel.publish(step)
            delivery.append(1e3 * (time.perf_counter() - start))
        again = time.perf_counter()
        shared.__post_init__()  # the whole proof of the weights, which a publish spares
        return {
            **{name: found[name] for name in ("mean_absolute_difference", "quantiles", "tokens")},
            "difference_without_adapters": plain["mean_absolute_difference"],
            "generated_tokens_per_second": rate,
            "peak_gib": peak,
            "frugal_tokens_per_second": small,
            "delivery_ms": statistics.median(delivery),
            "proof_of_weights_ms": 1e3 * (time.perf_counter() - again),
        }

    result = asyncio.run(everything())
    trainer._opened.forward.is_checkpointed = False
    return result | {"tokens_per_second": trained(trainer, vocabulary, arguments.sequences[1], arguments)}


def table(found: dict[str, Any], base: str) -> str:
    lines, need = ["| figure | found | wanted |", "|---|---|---|"], NEED | {"peak_gib": _PEAK[base]}
    lines += [
        f"| {name} | {value:.3g} | {need.get(name, '')} |" for name, value in found.items() if isinstance(value, float)
    ]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="7b", choices=list(SHAPES))
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--base", default="plain", choices=list(_PEAK), help="how weights beside adapters are held")
    parser.add_argument("--folder", default="", help="of random weights that are there already")
    parser.add_argument("--rollouts", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=64, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=1024, help="of a completion")
    parser.add_argument("--length", type=int, default=1024, help="of a sequence that is trained on")
    sizes = "of a micro-batch of which only the stream is kept, and of one of which everything is"
    parser.add_argument("--sequences", type=int, nargs=2, default=[8, 16], help=sizes)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--profile", type=int, default=0, help="print this many kernels of a training step")
    output_arguments(parser)
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch:
        longest = max(8192, arguments.length, arguments.tokens + arguments.prompt)
        folder = Path(arguments.folder or prepare(arguments.model, Path(scratch), arguments.device, longest))
        found = measured(folder, arguments)
    asked = ("model", "rank", "base", "rollouts", "prompt", "length", "sequences")
    settings = {name: getattr(arguments, name) for name in asked}
    settings["completion"] = arguments.tokens
    result = {"benchmark": "adapters", **settings, **found}
    result["ratio"] = _PEAK[arguments.base] / found["peak_gib"] if found["peak_gib"] else 0.0
    publish(result | circumstances(arguments.device), table(found, arguments.base), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
