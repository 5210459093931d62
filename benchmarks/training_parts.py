"""Where a training step's time goes: each kernel and each matrix product alone, in bytes/s and operations/s.

    python benchmarks/training_parts.py [--tokens 16384] [--length 512]

The shapes are SmolLM2-135M's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

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
    arguments = parser.parse_args()
    kernels(arguments.tokens)
    attentions(arguments.tokens, arguments.length)
    products(arguments.tokens)
    heads(4096)


def kernels(tokens: int) -> None:
    residual, delta, weight = drawn(tokens, HIDDEN, dtype=torch.float32), drawn(tokens, HIDDEN), drawn(HIDDEN).float()
    state, normed, scale = norm.forward(residual, delta, weight, 1e-5, BF16)
    row = tokens * HIDDEN / 1e9
    report("norm forward", lambda: norm.forward(residual, delta, weight, 1e-5, BF16), row * 12)
    report("norm backward", lambda: norm.backward(residual, normed, state, weight, scale, BF16), row * 16)
    gate_up, pull = drawn(tokens, 2 * FEED), drawn(tokens, FEED)
    cell = tokens * FEED / 1e9
    report("swiglu forward", lambda: swiglu.forward(gate_up), cell * 6)
    report("swiglu backward", lambda: swiglu.backward(gate_up, pull), cell * 12)
    width = (HEADS.queries + 2 * HEADS.keys) * HEADS.size
    fused, angle = drawn(tokens, width), drawn(tokens, HEADS.size // 2).float()
    cosine, sine = angle.cos(), angle.sin()
    report("rotate", lambda: attention.rotate(fused, cosine, sine, HEADS), tokens * width * 0.8 * 4 / 1e9)
    parts = [part.contiguous() for part in HEADS.split(drawn(tokens, width))]
    report("rotate back", lambda: attention.rotate_back(*parts, cosine, sine), tokens * width * 4 / 1e9)


def attentions(tokens: int, length: int) -> None:
    width = (HEADS.queries + 2 * HEADS.keys) * HEADS.size
    query, key, value = HEADS.split(drawn(tokens, width))
    count = tokens // length
    plan = attention.Varlen(np.full(count, length), np.arange(tokens), "cuda")
    ends = (plan.query_ends, plan.key_ends, length, length)
    work = 2 * tokens * length * HEADS.queries * HEADS.size
    forward = lambda: torch.ops.aten._flash_attention_forward(  # noqa: E731
        query, key, value, *ends, 0.0, True, False, scale=0.125
    )
    output, logsumexp, random, unused, _ = forward()
    pull = torch.randn_like(output)
    report("flash forward", forward, operations=work)
    report(
        "flash backward",
        lambda: torch.ops.aten._flash_attention_backward(
            pull, query, key, value, output, logsumexp, *ends, 0.0, True, random, unused, scale=0.125
        ),
        operations=2.5 * work,
    )
    from torch.nn.attention import SDPBackend, sdpa_kernel

    dense = [t.reshape(count, length, -1, 64).transpose(1, 2).detach().requires_grad_() for t in (query, key, value)]
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):

            def both(backend: SDPBackend = backend) -> None:
                found = torch.nn.functional.scaled_dot_product_attention(*dense, is_causal=True, enable_gqa=True)
                found.backward(torch.ones_like(found))

            report(f"sdpa {backend.name} both ways", both, operations=3.5 * work)


def products(tokens: int) -> None:
    for name, inputs, outputs in (
        ("qkv", HIDDEN, 960), ("output", HIDDEN, HIDDEN), ("gate_up", HIDDEN, 2 * FEED), ("down", FEED, HIDDEN),
    ):  # fmt: skip
        state, weight, pull = drawn(tokens, inputs), drawn(outputs, inputs), drawn(tokens, outputs)
        work = 2 * tokens * inputs * outputs
        report(f"{name} forward", lambda s=state, w=weight: torch.mm(s, w.t()), operations=work)
        report(f"{name} to the state", lambda p=pull, w=weight: torch.mm(p, w), operations=work)
        report(
            f"{name} to the weight, float32", lambda p=pull, s=state: product(p.t(), s, torch.float32), operations=work
        )
        report(f"{name} to the weight, bfloat16", lambda p=pull, s=state: torch.mm(p.t(), s), operations=work)


def heads(rows: int) -> None:
    hidden, weight = drawn(rows, HIDDEN), drawn(VOCABULARY, HIDDEN)
    work = 2 * rows * HIDDEN * VOCABULARY
    cells = rows * VOCABULARY / 1e9
    logits = product(hidden, weight.t(), torch.float32)
    tokens, temperature = torch.randint(0, VOCABULARY, (rows,), device="cuda"), torch.ones(rows, device="cuda")
    found = torch.empty(3, rows, device="cuda")
    pulls = torch.stack((found[0], found[1], found[1], found[2], temperature))
    pull = logprobs.gradient(logits, tokens, pulls, BF16)
    total = torch.zeros(VOCABULARY, HIDDEN, device="cuda")
    report("logits float32", lambda: product(hidden, weight.t(), torch.float32), operations=work)
    report("logits bfloat16", lambda: torch.mm(hidden, weight.t()), operations=work)
    report("statistics", lambda: logprobs.statistics(logits, tokens, temperature, found), cells * 4)
    report("gradient of logits", lambda: logprobs.gradient(logits, tokens, pulls, BF16), cells * 6)
    report("to the state", lambda: torch.mm(pull, weight), operations=work)
    report("to the weight, added", lambda: add_product(total, pull.t(), hidden), operations=work)


if __name__ == "__main__":
    main()
