"""What the kernels of a GPU take of it, compiled for Hopper on any machine: registers, spilled bytes, shared memory.

    python benchmarks/kernel_resources.py [--model 7b] [--rows 16] [--json]

Kernels are called as engine and trainer call them, at a model's shape, and compiled instead of run. A kernel that
spills keeps some of its numbers in memory; one that needs more than 227 KiB of shared memory cannot run at all, and
neither can one that does not compile. `ratio` is the share of kernels that spill nothing. Needs `triton`, no GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from machine import circumstances, output_arguments, publish
from shapes import SHAPES
from torch import Tensor

from strop.kernels.attention import Heads, Varlen
from strop.kernels.decode import PAGE, Rotation, Sheet, TokenPlaces
from strop.kernels.eight_bits import BLOCK, Eights
from strop.kernels.sampling.sample_token import Draws

if importlib.util.find_spec("triton") is None:
    raise SystemExit("kernel_resources.py needs Triton, which is not here: `make kernels` brings it and runs this")

from triton.backends import nvidia
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from strop.kernels.triton import attention, attention_back, chain, eight_bits, head, in_order, norm, swiglu
from strop.kernels.triton.decode import Kernels
from strop.kernels.triton.norm_eight_bits import encode_norm

MOST_SHARED = 227 * 1024  # bytes that a program may have on Hopper
BF16, F32, INT = torch.bfloat16, torch.float32, torch.int32
_CONTEXT, _SLOTS, _TOKENS = 2048, 4, 2048  # of tables, of sheets, and of what is trained on


class Hopper:
    """What Triton asks of a driver before it compiles."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


class Found(NamedTuple):
    """One compiled kernel."""

    kernel: str
    registers: int  # of one thread
    spilled: int  # bytes of one thread
    shared: int  # bytes of a program
    warps: int


@contextmanager
def compiling() -> Iterator[dict[str, Any]]:
    """Kernels that are called meanwhile are compiled for Hopper, and not run: by name and how often they differed."""
    found: dict[str, Any] = {}
    run, chained = JITFunction.run, chain.chained

    def compiled(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> None:
        kernel = run(self, *arguments, grid=grid, warmup=True, **options)
        if not any(each is kernel for each in found.values()):
            place = f"{self.fn.__module__.rpartition('.')[2]}.{self.fn.__name__}"
            found[f"{place} {sum(name.split()[0] == place for name in found) + 1}"] = kernel

    def as_on_hopper(rows: int, device: torch.device) -> dict[str, Any]:
        return {"IS_CHAINED": True, "launch_pdl": True} if rows <= chain.MOST else {"IS_CHAINED": False}

    users = [each for name, each in sys.modules.items() if name.startswith("strop.kernels.triton.")]
    users = [each for each in users if getattr(each, "chained", None) is chained]
    driver.set_active(Hopper())
    JITFunction.run = compiled
    for user in users:
        vars(user)["chained"] = as_on_hopper
    try:
        yield found
    finally:
        JITFunction.run = run
        for user in users:
            vars(user)["chained"] = chained


def some(*shape: int, dtype: torch.dtype = BF16) -> Tensor:
    """Numbers that nobody reads."""
    return torch.empty(*shape, dtype=dtype)


def decoding(shape: dict[str, Any], rows: int) -> None:
    """A decode step of so many rows, a draft's guess, and a pass over a prompt."""
    does, hidden, size = Kernels(), shape["hidden_size"], shape["hidden_size"] // shape["num_attention_heads"]
    heads = Heads(shape["num_attention_heads"], shape["num_key_value_heads"], size)
    state, residual, weight = some(rows, hidden), some(rows, hidden, dtype=F32), some(hidden)
    keys, values = (some(8, heads.keys, PAGE, size) for _ in "kv")
    tables, at = some(_SLOTS, _CONTEXT // PAGE, dtype=INT), some(rows, dtype=INT)
    cosines, sines = (some(_CONTEXT, size // 2, dtype=F32) for _ in "cs")
    norm.forward(residual, state, weight, 1e-6, BF16, is_in_place=True)
    for wide, inner in ((heads.width, hidden), (hidden, heads.queries * size), (hidden, shape["intermediate_size"])):
        in_order.product(some(rows, inner), some(wide, inner), None)
    in_order.gated(state, some(2 * shape["intermediate_size"], hidden), None)
    for runs in (None, some(2, 3, dtype=INT)):
        where = TokenPlaces(at, at, tables, runs)
        rotation = Rotation(cosines, sines, None, None, 0.0)
        does.store(some(rows, heads.queries + 2 * heads.keys, size), keys, values, where, rotation)
        does.attend(some(rows, heads.queries, size), keys, values, where, 0.1)
    scores, position = some(rows, shape["vocab_size"], dtype=F32), some(rows, dtype=torch.int64)
    how = Draws(some(rows, dtype=F32), position, some(rows, dtype=F32), position)
    for races in (False, True):
        for is_truncated in (False, True):
            Kernels(races).draw(scores, how, at, is_truncated)
    sheet = Sheet(
        some(_SLOTS, 64, dtype=INT), some(_SLOTS, 64, dtype=F32), some(_SLOTS, 64, dtype=INT),
        some(_SLOTS, dtype=INT), some(_SLOTS, dtype=INT),
        some(_SLOTS, dtype=torch.bool), some(1, dtype=INT), some(2, dtype=torch.int64),
    )  # fmt: skip
    does.write(sheet, position, position, some(rows, dtype=F32))
    does.write(sheet, position, some(rows, 4, dtype=torch.int64), some(rows, 4, dtype=F32), position)
    does.pair(residual, position, some(8, hidden), 1e-6)


def in_eight_bits(shape: dict[str, Any], rows: int) -> None:
    """Products of eight bits and norms before them, of few rows and of many."""
    hidden, wide = shape["hidden_size"], 2 * shape["intermediate_size"]
    weight, _ = Eights.squares([wide], hidden, torch.device("cpu"))
    narrow, _ = Eights.squares([hidden], hidden, torch.device("cpu"))
    eight_bits.encode_squares(some(wide, hidden), weight)
    for count in (rows, 4096):
        state = eight_bits.encode(some(count, hidden))
        eight_bits.multiply(state, weight, None, BF16)
        if eight_bits.is_few(state, narrow):
            eight_bits.multiply_few(state, narrow, None, some(count, hidden))
        eight_bits.encode_swiglu(some(count, wide), False)
        for delta in (None, some(count, hidden)):
            encode_norm(some(count, hidden, dtype=F32), delta, some(hidden), 1e-6, BF16)
    eight_bits.encode_across(some(BLOCK, hidden), True)


def training(shape: dict[str, Any]) -> None:
    """The kernels of a training step, forward and backward."""
    hidden, size = shape["hidden_size"], shape["hidden_size"] // shape["num_attention_heads"]
    heads = Heads(shape["num_attention_heads"], shape["num_key_value_heads"], size)
    plan = Varlen(np.array([_TOKENS]), np.arange(_TOKENS), "cpu")
    fused, state = some(_TOKENS, heads.width), some(_TOKENS, hidden)
    output, level = attention.attend(fused, heads, plan, 0.1)
    angles = [some(_TOKENS, size // 2, dtype=F32) for _ in "cs"]
    attention_back.attend_back(output, fused, output, level, heads, plan, 0.1, (angles[0], angles[1]))
    residual, weight, scale = some(_TOKENS, hidden, dtype=F32), some(hidden), some(_TOKENS, dtype=F32)
    norm.forward(residual, state, weight, 1e-6, BF16)
    norm.backward(residual, state, residual, state, weight, scale)
    gate_up = some(_TOKENS, 2 * shape["intermediate_size"])
    swiglu.forward(gate_up)
    swiglu.backward(gate_up, some(_TOKENS, shape["intermediate_size"]))
    tokens, matrix = some(256, dtype=torch.int64), some(shape["vocab_size"], hidden)
    head.statistics(state[:256], matrix, tokens, scale[:256], some(3, 256, dtype=F32))
    head.gradient(state[:256], matrix, tokens, some(5, 256, dtype=F32))


def measured(name: str, kernel: Any) -> Found:
    """What the assembler says of it."""
    assembler = Path(nvidia.__file__).parent / "bin" / "ptxas"
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(kernel.asm["ptx"])
        file.flush()
        command = [str(assembler), "-v", "--gpu-name=sm_90a", file.name, "-o", "/dev/null"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    registers, spilled = (re.search(each, said) for each in (r"Used (\d+) registers", r"(\d+) bytes spill stores"))
    assert registers and spilled, said
    return Found(name, int(registers[1]), int(spilled[1]), kernel.metadata.shared, kernel.metadata.num_warps)


def table(found: list[Found]) -> str:
    lines = ["| kernel | registers | spilled bytes | shared KiB | warps |", "|---|---|---|---|---|"]
    lines += [f"| {e.kernel} | {e.registers} | {e.spilled} | {e.shared / 1024:.1f} | {e.warps} |" for e in found]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="7b", choices=list(SHAPES))
    parser.add_argument("--rows", type=int, default=16, help="of a decode step")
    output_arguments(parser)
    arguments = parser.parse_args(words)
    shape = SHAPES[arguments.model]
    with compiling() as kernels:
        decoding(shape, arguments.rows)
        in_eight_bits(shape, arguments.rows)
        training(shape)
    found = [measured(name, kernel) for name, kernel in kernels.items()]
    result = {
        "benchmark": "kernel_resources",
        "ratio": sum(not each.spilled for each in found) / len(found),
        "fits": all(each.shared <= MOST_SHARED for each in found),
        "model": arguments.model,
        "rows": arguments.rows,
        "kernels": [each._asdict() for each in found],
    }
    publish(result | circumstances("cpu"), table(found), arguments)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
