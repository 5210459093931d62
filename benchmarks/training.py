"""One training step on one GPU: strop beside plain transformers, on the same shapes.

    python benchmarks/training.py [--model FOLDER|random:1.5b] [--sequences 64] [--length 512] [--check] [--json]

Both take one AdamW step on the same number of tokens. strop holds weights and moments in float32, computes in bfloat16
and splits the step into micro-batches of `--max-tokens`; transformers holds and computes all in bfloat16, with its
default attention (SDPA where the family has it) and full logits, in one batch. A time is the median of `--steps` steps
after warming up, the whole step with its optimizer and its figures. MFU counts 6 operations per parameter and token
against 782 TFLOP/s, the bfloat16 matrix product measured on an H200; `mfu_with_attention` also counts attention's: 12
per layer, width of all heads and pair of tokens of which the later sees the earlier.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from shapes import prepare
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Message, Outcome, Rollout, Task, Turn

CEILING = 782e12  # operations/s
NEED = {"tokens_per_second": 400_000, "gib": 15}
SHAPES: dict[str, dict[str, Any]] = {
    "smollm2": {
        "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192, "rope_theta": 100000.0,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "initializer_range": 0.04,
    },
    "tiny": {
        "vocab_size": 512, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 1024,
        "tie_word_embeddings": True,
    },
}  # fmt: skip


def main() -> int:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = _folder(arguments.model, Path(scratch), arguments.device)
        sides: dict[str, Callable[[], Callable[[], object]]] = {
            "strop": lambda: strop_step(folder, arguments),
            "transformers": lambda: transformers_step(folder, arguments),
        }
        if arguments.check:
            check(folder, arguments)
        found = {name: measure(sides[name], arguments, name) for name in arguments.sides}
    result = {"benchmark": "training", "model": arguments.model, "sides": found, **circumstances(arguments)}
    if len(found) == 2:
        result["ratio"] = found["strop"]["tokens_per_second"] / found["transformers"]["tokens_per_second"]
    ours = found.get("strop")
    if ours is not None:
        result["is_reached"] = ours["tokens_per_second"] >= NEED["tokens_per_second"] and ours["gib"] <= NEED["gib"]
    print(json.dumps(result) if arguments.json else table(found))
    return 0


def measure(build: Callable[[], Callable[[], object]], arguments: argparse.Namespace, name: str) -> dict[str, float]:
    """Median seconds of a step, and the most memory that was ever in use."""
    gc.collect()
    is_gpu = arguments.device == "cuda"
    if is_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    step = build()
    for _ in range(arguments.warmup):
        step()
    gc.freeze()  # as a run does
    seconds = [_timed(step, is_gpu) for _ in range(arguments.steps)]
    if arguments.profile:
        _profile(step, arguments.profile, name)
    tokens = arguments.sequences * arguments.length
    median = statistics.median(seconds)
    rate = tokens / median / CEILING
    return {
        "seconds": median,
        "fastest": min(seconds),
        "slowest": max(seconds),
        "tokens_per_second": tokens / median,
        "mfu": 6 * arguments.num_parameters * rate,
        "mfu_with_attention": (6 * arguments.num_parameters + arguments.attention) * rate,
        "gib": torch.cuda.max_memory_allocated() / 2**30 if is_gpu else 0.0,
    }


def _timed(step: Callable[[], object], is_gpu: bool) -> float:
    """Whole steps and a host clock: a step ends with figures on the host, and what the host does counts."""
    if is_gpu:
        torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    if is_gpu:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def strop_step(folder: Path, arguments: argparse.Namespace) -> Callable[[], object]:
    trainer = TorchTrainer(
        device=arguments.device,
        dtype="bfloat16" if arguments.device == "cuda" else "float32",
        max_tokens=arguments.max_tokens,
        chunk=arguments.chunk,
        checkpointing=arguments.checkpointing,
        fused=arguments.fused,
    )
    trainer.open(folder, 0)
    arguments.num_parameters = sum(each.numel() for each in trainer.weights().values())
    config = AutoConfig.from_pretrained(folder)
    arguments.attention = _attention(config, arguments.length)
    batches = batches_of(arguments, int(config.vocab_size))
    objective = Objective((Clip(),))
    # a fresh layout each time, as every step of a run has
    return lambda: trainer.step([replace(batch) for batch in batches], objective)


def transformers_step(folder: Path, arguments: argparse.Namespace) -> Callable[[], object]:
    dtype = torch.bfloat16 if arguments.device == "cuda" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(arguments.device)
    arguments.num_parameters = sum(each.numel() for each in model.parameters())
    arguments.attention = _attention(model.config, arguments.length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    shape = (arguments.sequences, arguments.length)
    tokens = torch.randint(0, model.config.vocab_size, shape, device=arguments.device)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    return step


def check(folder: Path, arguments: argparse.Namespace) -> None:
    """Logprobs and gradients of siblings, against the same in float32 on transformers' own modules."""
    vocabulary = int(AutoConfig.from_pretrained(folder).vocab_size)
    groups = groups_of(np.random.default_rng(1), vocabulary, groups=4, siblings=4, prompt=112, written=400)
    found = []
    for dtype, fused in (("float32", "off"), ("bfloat16" if arguments.device == "cuda" else "float32", "on")):
        trainer = TorchTrainer(device=arguments.device, dtype=dtype, fused=fused, clip_norm=None, max_tokens=8192)
        trainer.open(folder, 0)
        batches = pack(groups, TokenMean(), 0, trainer.max_tokens)
        trainer.annotate(batches, frozenset({Logprobs("proximal")}))
        logprobs = torch.cat([each.logprobs["proximal"] for each in batches])
        found.append((logprobs, trainer.gradient(batches, Objective((Reinforce(),)))))
    (exact, exact_gradients), (quick, gradients) = found
    errors = {name: float((each - gradients[name]).norm() / each.norm()) for name, each in exact_gradients.items()}
    worst = max(errors, key=lambda name: errors[name])
    print(
        f"check: logprobs differ by {float((exact - quick).abs().sum() / (exact != 0).sum()):.2e} in the mean, "
        f"gradients by {statistics.median(errors.values()):.2e} of their norm in the median and "
        f"{errors[worst]:.2e} at most ({worst})",
        file=sys.stderr,
    )


def batches_of(arguments: argparse.Namespace, vocabulary: int) -> list[Batch]:
    """Every token but the first of each sequence is trained."""
    random, written = np.random.default_rng(0), arguments.length - 1
    groups = groups_of(random, vocabulary, groups=arguments.sequences, siblings=1, prompt=1, written=written)
    return pack(groups, TokenMean(), 0, arguments.max_tokens)


def groups_of(
    random: np.random.Generator, vocabulary: int, groups: int, siblings: int, prompt: int, written: int
) -> list[Group]:
    """Random rollouts that share their group's prompt, at random advantage."""
    found = []
    for number in range(groups):
        task = Task((Message("user", ""),), "", "benchmark", id=str(number))
        begin = random.integers(0, vocabulary, prompt)
        rollouts = []
        for index in range(siblings):
            turn = Turn(
                prompt=begin,
                tokens=random.integers(0, vocabulary, written),
                logprobs=np.full(written, -10.0, dtype=np.float32),
                versions=np.zeros(written, dtype=np.int64),
                message=Message("assistant", ""),
            )
            rollouts.append(Rollout(f"{number}/{index}", task, (turn,), Outcome.FINISHED))
            rollouts[-1].set_advantage(float(random.normal()))
        found.append(Group(number, task, rollouts))
    return found


def _profile(step: Callable[[], object], count: int, name: str) -> None:
    """The kernels that took longest, and how much of the step they fill together."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        seconds = _timed(step, torch.cuda.is_available())
    rows = [row for row in profiler.key_averages() if str(row.device_type).endswith("CUDA")]
    rows.sort(key=lambda row: -row.self_device_time_total)
    total = sum(row.self_device_time_total for row in rows)
    print(f"\n{name}: {total / 1e3:.1f} ms in kernels of {seconds * 1e3:.1f} ms (with the profiler)", file=sys.stderr)
    for row in rows[:count]:
        each = row.self_device_time_total / max(row.count, 1)
        print(
            f"{row.self_device_time_total / 1e3:9.2f} ms {row.count:6d} x {each:8.1f} us  {row.key[:110]}",
            file=sys.stderr,
        )


def _folder(model: str, scratch: Path, device: str) -> Path:
    if not model.startswith("random:"):
        return Path(model)
    name = model.removeprefix("random:")
    if name not in SHAPES:
        return prepare(name, scratch, device)
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**SHAPES[name])).save_pretrained(scratch)
    return scratch


def _attention(config: Any, length: int) -> float:
    """Operations of attention per token, forward and backward: half of a sequence is seen in the mean."""
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return float(12 * config.num_hidden_layers * config.num_attention_heads * size * length / 2)


def table(found: dict[str, dict[str, float]]) -> str:
    lines = ["| system | ms/step | tok/s | MFU | with attention | peak GiB |", "|---|---|---|---|---|---|"]
    for name, of in found.items():
        lines.append(
            f"| {name} | {of['seconds'] * 1e3:.1f} ({of['fastest'] * 1e3:.1f} to {of['slowest'] * 1e3:.1f}) | "
            f"{of['tokens_per_second']:,.0f} | {of['mfu']:.2f} | {of['mfu_with_attention']:.2f} | {of['gib']:.1f} |"
        )
    return "\n".join(lines)


def circumstances(arguments: argparse.Namespace) -> dict[str, Any]:
    is_gpu = arguments.device == "cuda"
    return {
        "sequences": arguments.sequences,
        "length": arguments.length,
        "max_tokens": arguments.max_tokens,
        "chunk": arguments.chunk,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "hardware": torch.cuda.get_device_name() if is_gpu else platform.processor(),
        "versions": {name: version(name) for name in ("torch", "transformers")} | {"python": platform.python_version()},
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", default="random:smollm2", help="a folder, or random weights: random:smollm2, 0.5b, 1.5b or 7b"
    )
    parser.add_argument("--sequences", type=int, default=64)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--max-tokens", type=int, default=32768)
    parser.add_argument("--chunk", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--checkpointing", default="off")
    parser.add_argument("--fused", default="auto")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sides", nargs="+", default=["strop", "transformers"])
    parser.add_argument("--profile", type=int, default=0, help="print this many kernels")
    parser.add_argument("--check", action="store_true", help="compare gradients with the slow path first")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
