"""Where a training step's time goes: each kernel and each matrix product alone, in bytes/s and operations/s.

    python benchmarks/training_parts.py [--tokens 16384] [--length 512] [--tune] [--tune-backward 12 2 128]

The shapes are SmolLM2-135M's; attention's way back is tuned for heads of queries, of keys, and their size.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.kernels import attention, logprobs, norm, swiglu
from strop.kernels.linear import add_product, product

HIDDEN, FEED, VOCABULARY = 576, 1536, 49152
HEADS = attention.Heads(9, 3, 64)
BF16 = torch.bfloat16


def drawn(*shape: int, dtype: torch.dtype = BF16) -> Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def timed(work: Callable[[], object]) -> float:
    """Median seconds, with the cache flushed by what ran before."""
    from triton.testing import do_bench

    return float(do_bench(work, warmup=20, rep=60, return_mode="median")) / 1e3


def report(name: str, work: Callable[[], object], gigabytes: float = 0.0, operations: float = 0.0) -> None:
    try:
        seconds = timed(work)
    except Exception as error:  # a variant this build of torch does not have
        print(f"{name:44s} {type(error).__name__}: {str(error)[:90]}")
        return
    speed = f"{gigabytes / seconds / 1e3:7.2f} TB/s" if gigabytes else f"{operations / seconds / 1e12:7.0f} TFLOP/s"
    print(f"{name:44s} {seconds * 1e6:9.1f} us {speed}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--tune-backward", type=int, nargs=3, metavar=("QUERIES", "KEYS", "SIZE"))
    arguments = parser.parse_args()
    if arguments.tune_backward:
        return tune_backward(arguments.tokens, arguments.length, attention.Heads(*arguments.tune_backward))
    if arguments.tune:
        return tune(arguments.tokens, arguments.length)
    kernels(arguments.tokens)
    attentions(arguments.tokens, arguments.length)
    products(arguments.tokens)
    heads(4096)


def kernels(tokens: int) -> None:
    residual, delta, weight = drawn(tokens, HIDDEN, dtype=torch.float32), drawn(tokens, HIDDEN), drawn(HIDDEN).float()
    _, normed, scale = norm.forward(residual, delta, weight, 1e-5, BF16)
    row = tokens * HIDDEN / 1e9
    report("norm forward", lambda: norm.forward(residual, delta, weight, 1e-5, BF16), row * 12)
    report("norm backward", lambda: norm.backward(residual, normed, residual, delta, weight, scale), row * 20)
    gate_up, pull = drawn(tokens, 2 * FEED), drawn(tokens, FEED)
    cell = tokens * FEED / 1e9
    report("swiglu forward", lambda: swiglu.forward(gate_up), cell * 6)
    report("swiglu backward", lambda: swiglu.backward(gate_up, pull), cell * 12)
    fused, angle = drawn(tokens, HEADS.width), drawn(tokens, HEADS.size // 2).float()
    cosine, sine = angle.cos(), angle.sin()
    report("rotate", lambda: attention.rotate(fused, cosine, sine, HEADS), tokens * HEADS.width * 0.8 * 4 / 1e9)


def attentions(tokens: int, length: int) -> None:
    fused, count = drawn(tokens, HEADS.width), tokens // length
    plan = attention.Varlen(np.full(count, length), np.arange(tokens), "cuda")
    work = 2 * tokens * length * HEADS.queries * HEADS.size
    output, level = attention.attend(fused, HEADS, plan, 0.125)
    pull = torch.randn_like(output)
    report("attention forward", lambda: attention.attend(fused, HEADS, plan, 0.125), operations=work)
    report(
        "attention backward",
        lambda: attention.attend_back(pull, fused, output, level, HEADS, plan, 0.125),
        operations=2.5 * work,
    )


def tune_backward(tokens: int, length: int, heads: attention.Heads) -> None:
    """Attention's way back with other shapes of one kernel at a time; the first line is how it is."""
    from itertools import product as every

    from strop.kernels.triton import attention_back
    from strop.kernels.triton.attention import options_of

    fused, pull = drawn(tokens, heads.width), drawn(tokens, heads.queries * heads.size)
    work = 5 * tokens * length * heads.queries * heads.size
    usual = options_of

    def tried(name: str) -> None:
        plan = attention.Varlen(np.full(tokens // length, length), np.arange(tokens), "cuda")
        output, level = attention.attend(fused, heads, plan, 0.1)
        report(name, lambda: attention.attend_back(pull, fused, output, level, heads, plan, 0.1), operations=work)

    tried("as it is")
    for kind, block in (("OF_QUERIES", "QUERY_BLOCK"), ("OF_KEYS", "KEY_BLOCK")):
        chosen = getattr(attention_back, kind)
        for rows, step, warps, stages in every((64, 128), (32, 64), (4, 8), (1, 2, 3)):
            options = {"STEP": step, "num_warps": warps, "num_stages": stages}

            def tuned(
                found: dict[str, int], heads: attention.Heads, c: Any = chosen, o: Any = options
            ) -> dict[str, int]:
                return dict(o) if found is c else usual(found, heads)

            vars(attention_back)["options_of"] = tuned
            setattr(attention, block, rows)
            tried(f"{kind} block {rows} {options}")
        vars(attention_back)["options_of"] = usual
        setattr(attention, block, 64)


def tune(tokens: int, length: int) -> None:
    """Every kernel that has a shape to choose, in several; the best ones belong into its file."""
    import itertools

    from strop.kernels.triton import attention as triton_attention
    from strop.kernels.triton import attention_back
    from strop.kernels.triton import head as triton_head
    from strop.kernels.triton import norm as triton_norm

    fused, count = drawn(tokens, HEADS.width), tokens // length
    work = 2 * tokens * length * HEADS.queries * HEADS.size
    for block, step, warps, stages in itertools.product((64, 128), (32, 64, 128), (4, 8), (2, 3)):
        attention.QUERY_BLOCK = block
        plan = attention.Varlen(np.full(count, length), np.arange(tokens), "cuda")
        options = {"STEP": step, "num_warps": warps, "num_stages": stages}
        triton_attention.ATTEND = options
        name = f"{block} {step} {warps} {stages}"
        report(f"attend {name}", partial(attention.attend, fused, HEADS, plan, 0.125), operations=work)
        output, level = torch.empty(tokens, 576, device="cuda", dtype=BF16), torch.zeros(9, tokens, device="cuda")
        pulled, into = torch.empty_like(level), torch.empty_like(fused)
        report(
            f"of_queries {name}",
            partial(
                attention_back._of_queries[(HEADS.queries, len(plan.queries))],
                output, fused, output, level, pulled, None, plan.queries, None, None, into, tokens, 0.125, 0.18,
                BLOCK=block, IS_TURNED=False, **triton_attention.shape_of(HEADS, plan, None, None), **options,
            ),
            operations=work * 1.5,
        )  # fmt: skip
    for block, step, warps, stages in itertools.product((64, 128), (32, 64, 128), (4, 8), (2, 3)):
        attention.KEY_BLOCK = block
        plan = attention.Varlen(np.full(count, length), np.arange(tokens), "cuda")
        options = {"STEP": step, "num_warps": warps, "num_stages": stages}
        report(
            f"of_keys {block} {step} {warps} {stages}",
            partial(
                attention_back._of_keys[(HEADS.keys, len(plan.keys))],
                output, fused, level, pulled, None, plan.keys, None, None, into, 576, HEADS.width, tokens, 0.125, 0.18,
                BLOCK=block, IS_TURNED=False, **triton_attention.shape_of(HEADS, plan, None, None), **options,
            ),
            operations=work * 2,
        )  # fmt: skip
    rows, hidden, weight = 4096, drawn(4096, HIDDEN), drawn(VOCABULARY, HIDDEN)
    tokens_, temperature = torch.randint(0, VOCABULARY, (rows,), device="cuda"), torch.ones(rows, device="cuda")
    found = torch.zeros(3, rows, device="cuda")
    pulls = torch.stack((found[0], found[1], found[1], found[2] + 10, temperature))
    for tile in ((128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 8, 4), (128, 256, 64, 8, 3),
                 (256, 128, 64, 8, 3), (128, 192, 64, 8, 3), (64, 128, 64, 4, 4), (64, 256, 64, 8, 3),
                 (128, 128, 32, 8, 4), (128, 64, 64, 4, 4)):  # fmt: skip
        options = dict(zip(("ROWS", "COLUMNS", "INNER", "num_warps", "num_stages"), tile, strict=True))
        triton_head.STATISTICS = triton_head.GRADIENT = options
        work = 2 * rows * HIDDEN * VOCABULARY
        report(
            f"statistics {tile}",
            lambda: triton_head.statistics(hidden, weight, tokens_, temperature, found),
            operations=work,
        )
        report(f"gradient {tile}", lambda: triton_head.gradient(hidden, weight, tokens_, pulls), operations=work)
    residual, delta, factor = drawn(tokens, HIDDEN, dtype=torch.float32), drawn(tokens, HIDDEN), drawn(HIDDEN).float()
    scale = torch.ones(tokens, device="cuda")
    for each, warps in itertools.product((1, 2, 4), (2, 4, 8)):
        triton_norm.FORWARD = triton_norm.BACKWARD = {"ROWS": each, "num_warps": warps}
        name, row = f"{each} {warps}", tokens * HIDDEN / 1e9
        report(f"norm forward {name}", lambda: norm.forward(residual, delta, factor, 1e-5, BF16), row * 12)
        for programs in (264, 528, 1056):
            triton_norm.PROGRAMS = programs
            work_back = lambda: norm.backward(residual, delta, residual, delta, factor, scale)  # noqa: E731
            report(f"norm backward {name} {programs}", work_back, row * 20)


def products(tokens: int) -> None:
    for name, inputs, outputs in (
        ("qkv", HIDDEN, 960), ("output", HIDDEN, HIDDEN), ("gate_up", HIDDEN, 2 * FEED), ("down", FEED, HIDDEN),
    ):  # fmt: skip
        state, weight, pull = drawn(tokens, inputs), drawn(outputs, inputs), drawn(tokens, outputs)
        work = 2 * tokens * inputs * outputs
        report(f"{name} forward", partial(torch.mm, state, weight.t()), operations=work)
        report(f"{name} to the state", partial(torch.mm, pull, weight), operations=work)
        report(f"{name} to the weight, float32", partial(product, pull.t(), state, torch.float32), operations=work)
        report(f"{name} to the weight, bfloat16", partial(torch.mm, pull.t(), state), operations=work)


def heads(rows: int) -> None:
    hidden, weight = drawn(rows, HIDDEN), drawn(VOCABULARY, HIDDEN)
    work = 2 * rows * HIDDEN * VOCABULARY
    tokens, temperature = torch.randint(0, VOCABULARY, (rows,), device="cuda"), torch.ones(rows, device="cuda")
    found = torch.empty(3, rows, device="cuda")
    logprobs.statistics(hidden, weight, tokens, temperature, found)
    pulls = torch.stack((found[0], found[1], found[1], found[2], temperature))
    pull = logprobs.gradient(hidden, weight, tokens, pulls)
    total = torch.zeros(VOCABULARY, HIDDEN, device="cuda")
    report("logits alone, bfloat16", lambda: torch.mm(hidden, weight.t()), operations=work)
    report("statistics", lambda: logprobs.statistics(hidden, weight, tokens, temperature, found), operations=work)
    report("gradient of logits", lambda: logprobs.gradient(hidden, weight, tokens, pulls), operations=work)
    report("to the state", lambda: torch.mm(pull, weight), operations=work)
    report("to the weight, added", lambda: add_product(total, pull.t(), hidden), operations=work)


if __name__ == "__main__":
    main()
