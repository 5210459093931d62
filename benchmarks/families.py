"""Every family of the fast path on one GPU, beside transformers: who is right, and who is quick.

    python benchmarks/families.py [--families llama gemma2 ...] [--parts same speed] [--json] [--save NAME]

Random weights of about 0.15 billion (8 layers, 1,024 wide; experts more). `same`: in float32 the quick engine's
completions
beside those of the plain one, which runs transformers' own modules, and its logprobs as far as completions agree; in
bfloat16 the engine's logprobs beside the trainer's for the same tokens, and with experts also without their replay;
logprobs and gradients of the quick trainer, and of transformers' modules in bfloat16, beside those in float32. `speed`:
tokens a second of generation (256 prompts of 64 tokens, completions of 128) and of training beside transformers, in
bfloat16. `ratio` is the least of generation's.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from generation import engine_side, prompts_of, speed, transformers_side
from machine import circumstances, output_arguments, publish
from mismatch import grouped
from training import groups_of, measure, strop_step, transformers_step
from transformers import AutoConfig, AutoModelForCausalLM

from strop.backends import Completion
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.turn_ops import extended
from strop.roles import Engine
from strop.training.losses.reinforce import Reinforce
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, IntArray, Sampling

_WIDE = {"hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4}
_SHAPE = {"vocab_size": 32000, "intermediate_size": 2816, "head_dim": 128, "max_position_embeddings": 2048}
_ENDS = {"bos_token_id": 1, "eos_token_id": 31999, "pad_token_id": 0}
_WINDOW = {"sliding_window": 100, "layer_types": ["sliding_attention", "full_attention"] * 4}
_EXPERTS = {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 704}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 100},
    "phi3": {"sliding_window": None},
    "olmo2": {},
    "qwen2": {},
    "qwen3": {},
    "gemma2": _WINDOW,
    "gemma3_text": _WINDOW,
    "mixtral": {"num_local_experts": 8, "intermediate_size": 1408, "sliding_window": None},
    "qwen3_moe": _EXPERTS,
}
_TINY = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "head_dim": 16, "num_attention_heads": 2}
_TINY |= {"num_key_value_heads": 1, "num_hidden_layers": 2, "moe_intermediate_size": 16, "eos_token_id": 63}


def made(family: str, folder: Path, is_tiny: bool) -> Path:
    shape = _WIDE | _SHAPE | _ENDS | FAMILIES[family]
    if is_tiny:
        shape |= {name: value for name, value in _TINY.items() if name in shape}
        shape |= {"layer_types": shape["layer_types"][:2]} if "layer_types" in shape else {}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **shape, initializer_range=0.02))
    model.save_pretrained(folder)
    return folder


def completions(engine: Engine, folder: Path, prompts: list[IntArray], tokens: int) -> list[Completion]:
    engine.open(folder)

    async def everything() -> list[Completion]:
        sampling = Sampling(max_tokens=tokens)
        return list(await asyncio.gather(*(engine.sample(each, sampling, key) for key, each in enumerate(prompts))))

    return asyncio.run(everything())


def told(prompts: list[IntArray], found: list[Completion], with_notes: bool) -> list[Group]:
    """As rollouts, with the experts that wrote them or without."""
    groups = grouped(prompts, found, 1)
    for group, done in zip(groups, found, strict=True):
        (rollout,) = group.rollouts
        (turn,) = rollout.turns
        if with_notes and done.aux:
            empty = replace(turn, tokens=turn.tokens[:0], logprobs=turn.logprobs[:0], versions=turn.versions[:0])
            turn = replace(turn, aux=extended(empty, done.aux, len(done.tokens)))
        rollout.turns = (turn,)
    return groups


def apart(folder: Path, groups: list[Group], device: str, dtype: str) -> dict[str, float]:
    """The trainer's logprobs beside those that the engine gave."""
    trainer = TorchTrainer(device=device, dtype=dtype, max_tokens=8192, fused="on")
    trainer.open(folder, 0)
    batches = pack(groups, None, 0, trainer.max_tokens)
    trainer.annotate(batches, frozenset({Logprobs("proximal")}))
    gaps = torch.cat([(each.logprobs["proximal"] - each.behavior_logprobs)[each.trainable] for each in batches]).abs()
    return {"mean": float(gaps.mean()), "most": float(gaps.max()), "share_equal": float((gaps < 1e-5).float().mean())}


def apart_from_float32(folder: Path, vocabulary: int, arguments: argparse.Namespace, dtype: str) -> dict[str, Any]:
    """Logprobs and gradients of the quick trainer, and of transformers' own modules in its type, beside float32."""
    groups = groups_of(np.random.default_rng(1), vocabulary, groups=4, siblings=4, prompt=30, written=arguments.tokens)

    def learned(kind: str, fused: str) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        trainer = TorchTrainer(device=arguments.device, dtype=kind, fused=fused, clip_norm=None, max_tokens=4096)
        trainer.open(folder, 0)
        batches = pack(groups, TokenMean(), 0, trainer.max_tokens)
        trainer.annotate(batches, frozenset({Logprobs("proximal")}))
        logprobs = torch.cat([each.logprobs["proximal"][each.trainable] for each in batches])
        return logprobs, trainer.gradient(batches, Objective((Reinforce(),)))

    exact, gradients = learned("float32", "off")
    found = {}
    for name, fused in (("quick", "on"), ("transformers", "off")):
        logprobs, ours = learned(dtype, fused)
        errors = [float((each - ours[key]).norm() / each.norm()) for key, each in gradients.items()]
        mean = float((exact - logprobs).abs().mean())
        found[name] = {"logprobs": mean, "gradients_median": statistics.median(errors), "gradients_most": max(errors)}
    return found


def parting(one: IntArray, other: IntArray) -> int:
    """Where two completions part: drawn from 32,000 nearly equal probabilities, a token turns with their last bits."""
    apart = np.flatnonzero(one != other) if len(one) == len(other) else np.zeros(1, np.int64)
    return int(apart[0]) if len(apart) else len(one)


def same(folder: Path, prompts: list[IntArray], arguments: argparse.Namespace) -> dict[str, Any]:
    device, rows = arguments.device, len(prompts)
    room: dict[str, Any] = {"rows": rows, "device": device, "cache_tokens": rows * 2048}
    few = prompts[:16]
    plain = completions(TorchEngine(rows=16, device=device), folder, few, arguments.tokens)
    engine = PagedEngine(dtype="float32", **room)
    quick = completions(engine, folder, few, arguments.tokens)
    alike = [np.array_equal(one.tokens, other.tokens) for one, other in zip(plain, quick, strict=True)]
    parted = [(parting(one.tokens, other.tokens), one, other) for one, other in zip(plain, quick, strict=True)]
    worst = max(float(np.abs(one.logprobs[:at] - other.logprobs[:at]).max(initial=0)) for at, one, other in parted)
    dtype = "bfloat16" if torch.device(device).type == "cuda" else "float32"
    written = completions(PagedEngine(dtype=dtype, **room), folder, prompts, arguments.tokens)
    found: dict[str, Any] = {
        "is_fast": engine._slow is None,
        "float32_same_completions": f"{sum(alike)} of {len(alike)}",
        "float32_worst_logprob": worst,
        "engine_against_trainer": apart(folder, told(prompts, written, True), device, dtype),
        "apart_from_float32": apart_from_float32(folder, 64, arguments, dtype),
    }
    if any(each.aux for each in written):
        found["without_replayed_experts"] = apart(folder, told(prompts, written, False), device, dtype)
    return found


def timed(folder: Path, prompts: list[IntArray], arguments: argparse.Namespace) -> dict[str, float]:
    device, found = arguments.device, {}
    dtype = "bfloat16" if torch.device(device).type == "cuda" else "float32"
    engine = PagedEngine(rows=len(prompts), device=device, dtype=dtype, cache_tokens=len(prompts) * 2048)
    sides = {
        "engine": engine_side(engine, folder, prompts, arguments.tokens),
        "transformers": transformers_side(folder, prompts, arguments.tokens, device),
    }
    for name, generate in sides.items():
        found[name] = speed(generate, 1, device)[0]
    settings = {"sequences": 64, "length": 512, "max_tokens": 32768, "chunk": 4096, "steps": 4, "warmup": 2}
    if arguments.is_tiny:
        settings |= {"sequences": 2, "length": 16, "steps": 1}
    rest = {"checkpointing": "off", "fused": "auto", "device": device, "profile": 0}
    training = argparse.Namespace(**settings, **rest)
    for name, step in (("trained", strop_step), ("transformers_trained", transformers_step)):
        found[name] = measure(lambda step=step: step(folder, training), training, name)["tokens_per_second"]  # type: ignore[misc]
    return found


def measured(family: str, arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = made(family, Path(scratch), arguments.is_tiny)
        prompts = prompts_of(folder, arguments.sequences, 8, 64)
        found: dict[str, Any] = {"family": family}
        for part in arguments.parts:
            found |= (same if part == "same" else timed)(folder, prompts, arguments)
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
    print(found, file=sys.stderr, flush=True)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| family | float32: same completions | engine and trainer apart | generation | training |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        gap, times = row.get("engine_against_trainer", {}).get("mean", float("nan")), ["-", "-"]
        if "engine" in row:
            times = [
                f"{row[own]:,.0f} tok/s, {row[own] / row[other]:.1f} times"
                for own, other in (("engine", "transformers"), ("trained", "transformers_trained"))
            ]
        lines.append(
            f"| {row['family']} | {row.get('float32_same_completions', '-')} | {gap:.2g} | {' | '.join(times)} |"
        )
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--parts", nargs="+", default=["same", "speed"], choices=["same", "speed"])
    parser.add_argument("--sequences", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=128, help="of a completion")
    parser.add_argument("--is-tiny", action="store_true", help="models of a few thousand weights, to try this script")
    output_arguments(parser)
    arguments = parser.parse_args(words)
    rows = [measured(family, arguments) for family in arguments.families]
    ratios = [row["engine"] / row["transformers"] for row in rows if "engine" in row]
    result = {"benchmark": "families", "ratio": min(ratios, default=None), "families": rows}
    publish(result | circumstances(arguments.device), table(rows), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
