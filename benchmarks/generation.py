"""Tokens per second of generation with logprobs: strop's engine, transformers' `generate`, and vLLM if it is here.

    python benchmarks/generation.py [--models smollm2 0.5b 1.5b 7b] [--sequences 1024 2048] [--tokens 256]
        [--prompt-tokens 64 | 256 768] [--group-size 8] [--json] [--save NAME]
        [--peers transformers vllm vllm_engine fp8 race parts plain]

Every prompt is asked for `--group-size` times, as in RL; all sequences are asked for at once and none ends early. A
time is the best of `--rounds` after one that is not counted, prompts included; strop begins each with an empty cache.
strop and vLLM give the logprob of every sampled token, transformers gives none. `vllm` is vLLM as it comes,
`vllm_engine` is strop with engine=vllm: side by side they show what drawing by key and stepping in process cost. `fp8`
is strop's own engine with products of eight bits, and `race` draws tokens by a race.

The floor is what reading all weights and all keys and values once per step would take at the memory bandwidth, which is
measured by a copy unless given. With many sequences matrix products take longer than that: the second floor is theirs
alone, at the measured speed of a large one. `ratio` is strop over the best peer for the first model and number of
sequences.

On a CPU sides take turns, round by round, and seconds are those of the processor (with OMP_NUM_THREADS=1: of one core),
so that what else the machine does counts little. There strop has three steps, of which the quickest that can be is
taken: whole (one compiled call), in parts (`--peers parts`: torch multiplies and draws, compiled C does what lies
between) and plain torch (`--peers plain`: what there is without a compiler). For the whole one `outside` is the share
of all the time that is neither products nor attention: drawing, norms, Python, the prompts' bookkeeping.

    OMP_NUM_THREADS=1 python benchmarks/generation.py --models pocket --device cpu --sequences 32 128 --tokens 128 \\
        --peers parts plain --rounds 5
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import bandwidth, circumstances, operations, output_arguments, publish, synchronize
from shapes import SHAPES, cost, prepare
from steps_on_a_cpu import Generate, alternated, asking, share_outside, stepping

from strop.generate.engines.cpu.block_step import block_step
from strop.generate.engines.cpu.compiled_llama import compiled_llama
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.vllm.vllm_engine import VllmEngine
from strop.roles import Engine
from strop.types import IntArray

NEED = {1024: 250_000, 2048: 300_000}  # of SmolLM2 on an H200


def prompts_of(folder: Path, sequences: int, group_size: int, shortest: int, longest: int = 0) -> list[IntArray]:
    """Random tokens, so many or as many as probability says; siblings have the same."""
    vocabulary = int(json.loads((folder / "config.json").read_text())["vocab_size"])
    stream = np.random.default_rng(0)
    sizes = stream.integers(shortest, max(shortest, longest) + 1, -(-sequences // group_size))
    different = [stream.integers(20, vocabulary - 2, size) for size in sizes]
    return [different[index // group_size] for index in range(sequences)]


def strop_side(folder: Path, prompts: list[IntArray], tokens: int, device: str) -> Generate:
    is_gpu = torch.device(device).type == "cuda"
    engine: Engine = PagedEngine(rows=len(prompts), device=device) if is_gpu else TorchEngine(rows=len(prompts))
    return engine_side(engine, folder, prompts, tokens)


def fp8_side(folder: Path, prompts: list[IntArray], tokens: int, device: str) -> Generate:
    dtype = "bfloat16" if torch.device(device).type == "cuda" else "float32"
    engine = PagedEngine(rows=len(prompts), device=device, dtype=dtype, matmul_precision="fp8")
    return engine_side(engine, folder, prompts, tokens)


def race_side(folder: Path, prompts: list[IntArray], tokens: int, device: str) -> Generate:
    dtype = "bfloat16" if torch.device(device).type == "cuda" else "float32"
    return engine_side(PagedEngine(rows=len(prompts), device=device, dtype=dtype, races=True), folder, prompts, tokens)


def vllm_engine_side(folder: Path, prompts: list[IntArray], tokens: int, device: str) -> Generate:
    dtype = "bfloat16" if torch.device(device).type == "cuda" else "float32"
    engine = VllmEngine(rows=len(prompts), device=device, dtype=dtype, memory=0.5)
    return engine_side(engine, folder, prompts, tokens)


def engine_side(engine: Engine, folder: Path, prompts: list[IntArray], tokens: int) -> Generate:
    engine.open(folder)
    return asking(engine, prompts, tokens)


def parts_side(folder: Path, prompts: list[IntArray], tokens: int, device: str) -> Generate:
    return asking(stepping(folder, len(prompts), compiled_llama), prompts, tokens)


def plain_side(folder: Path, prompts: list[IntArray], tokens: int, device: str) -> Generate:
    return asking(stepping(folder, len(prompts), block_step), prompts, tokens)


def transformers_side(folder: Path, prompts: list[IntArray], tokens: int, device: str) -> Generate:
    from transformers import AutoModelForCausalLM

    dtype = torch.bfloat16 if torch.device(device).type == "cuda" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device)
    batch = torch.tensor(np.stack(prompts), device=device)
    settings = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "pad_token_id": 0}

    def generate() -> int:
        with torch.no_grad():
            found = model.generate(
                batch, attention_mask=torch.ones_like(batch), max_new_tokens=tokens, min_new_tokens=tokens, **settings
            )
        return int(found[:, batch.shape[1] :].numel())

    return generate


def vllm_side(folder: Path, prompts: list[IntArray], tokens: int, device: str) -> Generate:
    from vllm import LLM, SamplingParams

    engine = LLM(str(folder), skip_tokenizer_init=True, max_num_seqs=len(prompts), gpu_memory_utilization=0.5)
    sampling = SamplingParams(max_tokens=tokens, temperature=1.0, logprobs=0, ignore_eos=True, detokenize=False)
    asked = [{"prompt_token_ids": prompt.tolist()} for prompt in prompts]

    def generate() -> int:
        found = engine.generate(asked, sampling, use_tqdm=False)
        return sum(len(each.outputs[0].token_ids) for each in found)

    return generate


SIDES: dict[str, Callable[[Path, list[IntArray], int, str], Generate]] = {
    "strop": strop_side,
    "parts": parts_side,
    "plain": plain_side,
    "fp8": fp8_side,
    "race": race_side,
    "transformers": transformers_side,
    "vllm": vllm_side,
    "vllm_engine": vllm_engine_side,
}


def speed(generate: Generate, rounds: int, device: str) -> tuple[float, float]:
    """Tokens per second of the best round, and its seconds."""
    generate()
    found = []
    for _ in range(rounds):
        synchronize(device)
        start = time.perf_counter()
        count = generate()
        synchronize(device)
        seconds = time.perf_counter() - start
        found.append((count / seconds, seconds))
    return max(found)


def floor(folder: Path, sequences: int, prompt: float, tokens: int, bytes_per_second: float) -> float:
    """Tokens per second if each step took as long as reading weights, keys and values once."""
    weights, per_token = cost(folder)
    a_step = (weights + sequences * (prompt + tokens / 2) * per_token) / bytes_per_second
    return sequences / a_step


def floor_of_products(folder: Path, operations_per_second: float) -> float:
    """Tokens per second if a step were its matrix products alone: two operations per weight and token."""
    weights, _ = cost(folder)
    return operations_per_second / weights  # bytes of bfloat16, two per weight


def compare(
    name: str, arguments: argparse.Namespace, speed_of_memory: float, speed_of_products: float
) -> list[dict[str, Any]]:
    """Every side with every number of sequences on one model."""
    rows = []
    own = ("parts", "plain", "fp8", "race")
    peers = [each for each in arguments.peers if each in own or importlib.util.find_spec(each.partition("_")[0])]
    with tempfile.TemporaryDirectory() as scratch:
        folder = prepare(name, Path(scratch), arguments.device)
        for sequences in arguments.sequences:
            prompts = prompts_of(folder, sequences, arguments.group_size, *arguments.prompt_tokens)
            length = float(np.mean([len(each) for each in prompts]))
            best = floor(folder, sequences, length, arguments.tokens, speed_of_memory)
            row: dict[str, Any] = {"model": name, "sequences": sequences, "floor": best, "sides": {}}
            row["floor_of_products"] = floor_of_products(folder, speed_of_products)
            if arguments.device == "cpu":
                made = {side: SIDES[side](folder, prompts, arguments.tokens, "cpu") for side in ("strop", *peers)}
                row["sides"] = alternated(made, arguments.rounds)
                row["outside"] = share_outside(folder, prompts, arguments.tokens, arguments.rounds)
            for side in ("strop", *peers) if arguments.device != "cpu" else ():
                row["sides"][side] = _measured(side, folder, prompts, arguments)
            print(name, sequences, row["sides"], row.get("outside"), file=sys.stderr)
            rate = row["sides"]["strop"].get("tokens_per_second", 0.0)
            row["share_of_floor"], row["share_of_products"] = rate / best, rate / row["floor_of_products"]
            others = [row["sides"][peer].get("tokens_per_second", 0.0) for peer in peers]
            row["ratio"] = rate / max(others) if others else None
            rows.append(row)
    return rows


def _measured(side: str, folder: Path, prompts: list[IntArray], arguments: argparse.Namespace) -> dict[str, Any]:
    """One side's figures; what does not fit into memory says so and does not end the others."""
    is_gpu = torch.device(arguments.device).type == "cuda"
    if is_gpu:
        torch.cuda.reset_peak_memory_stats()
    try:
        generate = SIDES[side](folder, prompts, arguments.tokens, arguments.device)
        rate, seconds = speed(generate, arguments.rounds, arguments.device)
        found: dict[str, Any] = {"tokens_per_second": rate, "seconds": seconds}
    except torch.OutOfMemoryError as error:
        found = {"error": str(error).splitlines()[0]}
    generate = None  # type: ignore[assignment]
    if is_gpu:
        found["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
        gc.collect()
        torch.cuda.empty_cache()
    return found


def table(rows: list[dict[str, Any]]) -> str:
    sides = list(dict.fromkeys(side for row in rows for side in row["sides"]))
    head = f"{'model':10}{'sequences':>10}" + "".join(f"{side + ' tok/s':>20}" for side in sides)
    lines = [head + f"{'ratio':>8}{'memory tok/s':>14}{'share':>8}{'products tok/s':>16}{'share':>8}{'outside':>9}"]
    for row in rows:
        rates = [row["sides"].get(side, {}).get("tokens_per_second") for side in sides]
        shown = "".join(f"{rate:>20,.0f}" if rate else f"{'-':>20}" for rate in rates)
        ratio = f"{row['ratio']:>8.1f}" if row["ratio"] else f"{'-':>8}"
        lines.append(
            f"{row['model']:10}{row['sequences']:>10}{shown}{ratio}{row['floor']:>14,.0f}{row['share_of_floor']:>8.0%}"
            f"{row['floor_of_products']:>16,.0f}{row['share_of_products']:>8.0%}"
            + (f"{outside:>9.0%}" if (outside := row.get("outside")) is not None else f"{'-':>9}")
        )
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    arguments = _arguments(words)
    speed_of_memory = arguments.bandwidth * 1e12 or bandwidth(arguments.device)
    speed_of_products = operations(arguments.device)
    rows = [row for name in arguments.models for row in compare(name, arguments, speed_of_memory, speed_of_products)]
    wanted = [
        row["sides"]["strop"]["tokens_per_second"] >= NEED[row["sequences"]]
        for row in rows
        if row["model"] == "smollm2" and row["sequences"] in NEED
    ]
    result = {
        "benchmark": "generation",
        "ratio": rows[0]["ratio"],
        "rows": rows,
        "tokens": arguments.tokens,
        "prompt_tokens": arguments.prompt_tokens,
        "bytes_per_second": speed_of_memory,
        "operations_per_second": speed_of_products,
        "is_reached": bool(wanted) and all(wanted),
        **circumstances(arguments.device),
    }
    publish(result, table(rows), arguments)
    return 0


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = ", ".join(SHAPES)
    parser.add_argument("--models", nargs="+", default=["smollm2"], help=f"smollm2, a folder, or random {known}")
    parser.add_argument("--sequences", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--tokens", type=int, default=256, help="new ones of each sequence")
    parser.add_argument("--prompt-tokens", type=int, nargs="+", default=[64], help="one number, or least and most")
    parser.add_argument("--group-size", type=int, default=8, help="sequences per prompt")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--peers", nargs="*", choices=sorted(SIDES.keys() - {"strop"}), default=["transformers", "vllm"]
    )
    parser.add_argument("--bandwidth", type=float, default=0.0, help="TB/s; 0: measure a copy")
    output_arguments(parser)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
