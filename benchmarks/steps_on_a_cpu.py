"""The three decode steps of the engine on a CPU, side by side: whole, in parts, and plain torch."""

from __future__ import annotations

import asyncio
import ctypes
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from strop.generate.engines.cpu.decoder import Decoder
from strop.generate.engines.cpu.fused_cpu_step import WholeStep
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.kernels.cpu.build import library
from strop.kernels.cpu.decode import compiled_decode
from strop.kernels.cpu.step import Steps
from strop.roles import Engine
from strop.types import IntArray, Sampling

Generate: TypeAlias = Callable[[], int]  # all sequences once; answers with how many tokens came


def asking(engine: Engine, prompts: list[IntArray], tokens: int) -> Generate:
    runner = asyncio.Runner()
    sampling = Sampling(max_tokens=tokens)

    async def everything() -> int:
        asked = (engine.sample(prompt, sampling, key) for key, prompt in enumerate(prompts))
        found = await asyncio.gather(*asked)
        assert all(len(each.tokens) == len(each.logprobs) for each in found)
        return sum(len(each.tokens) for each in found)

    def generate() -> int:
        engine.forget()
        return runner.run(everything())

    return generate


def stepping(folder: Path, rows: int, make: Callable[[Any], Any]) -> TorchEngine:
    """An engine on a CPU whose forward pass is another one than it would choose."""
    engine = TorchEngine(rows=rows)
    engine.open(folder)
    if (forward := make(engine._model)) is None:
        raise SystemExit(f"{make.__name__} cannot be had for {folder} on this machine: leave its peer out")
    engine._decoder = Decoder(engine._model, forward, rows, 8192)
    return engine


def share_outside(folder: Path, prompts: list[IntArray], tokens: int, rounds: int) -> float | None:
    """Of the whole step's time, what is neither products nor attention; None where there is no such step."""
    compiled, decode = library("step", "TIMED"), compiled_decode()
    if compiled is None or decode is None or torch.get_num_threads() > 1:
        return None
    timed = partial(WholeStep, decode=decode, steps=Steps(compiled))
    generate = asking(stepping(folder, len(prompts), lambda model: timed(model)), prompts, tokens)
    taken, shares = (ctypes.c_int64 * 2).in_dll(compiled, "taken"), []
    for _ in range(rounds + 1):
        before, start = sum(taken), time.perf_counter_ns()
        generate()
        shares.append(1 - (sum(taken) - before) / (time.perf_counter_ns() - start))
    return float(np.median(shares[1:]))


def alternated(sides: dict[str, Generate], rounds: int) -> dict[str, dict[str, float]]:
    """The same for each side on a CPU, by seconds of the processor: the best and the median of rounds in turn."""
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    counts = {side: generate() for side, generate in sides.items()}
    for _ in range(rounds):
        for side, generate in sides.items():
            start = time.process_time()
            generate()
            seconds[side].append(time.process_time() - start)
    return {
        side: {
            "tokens_per_second": counts[side] / min(taken),
            "median_tokens_per_second": counts[side] / float(np.median(taken)),
            "seconds": min(taken),
        }
        for side, taken in seconds.items()
    }
