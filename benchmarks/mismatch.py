"""How far the engine's logprobs are from the trainer's, for the same tokens and weights.

    python benchmarks/mismatch.py [--model smollm2] [--prompts 128] [--group-size 8] [--tokens 256] [--json]

The engine answers tasks of reasoning-gym (or, where the model has no tokenizer, random prompts) at temperature 1 and
says how likely each token was; the trainer scores the same tokens with its own kernels. On a GPU both compute in
bfloat16. Beside the mean difference stands how often the ratio of the two probabilities leaves 0.9 to 1.1, which is
what a clipped loss sees. `ratio` is the difference allowed over the one found: at least 1 is wanted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import circumstances, output_arguments, publish
from shapes import SHAPES, prepare

from strop.backends import Completion
from strop.generate.engines.select_engine import engine_on
from strop.generate.templates.chat_template import Template
from strop.models.loading.model_names import model_folder
from strop.training.pack import pack
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import FloatArray, Group, IntArray, Message, Outcome, Rollout, Sampling, Task, Turn

ALLOWED = 2e-3  # mean absolute difference of logprobs
LOW, HIGH = 0.9, 1.1
_QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)


def prompts_of(name: str, folder: Path, count: int) -> list[IntArray]:
    """Tasks in the model's own words, or random tokens."""
    if name in SHAPES:
        stream = np.random.default_rng(0)
        return [stream.integers(1, SHAPES[name]["vocab_size"] - 1, 32) for _ in range(count)]
    from strop.environments.external.reasoning_gym_small import (  # reasoning-gym, which random weights do without
        SETTINGS,
        Drill,
    )

    template, kinds = Template.load(folder), list(SETTINGS)
    tasks = [Drill(kinds[index % len(kinds)], 2).task(index // len(kinds)) for index in range(count)]
    return [template.opening(task.messages) for task in tasks]


def generate(folder: Path, prompts: list[IntArray], tokens: int, group_size: int, device: str) -> list[Completion]:
    engine = engine_on(device)
    engine.open(folder)

    async def everything() -> list[Completion]:
        asked = [prompt for prompt in prompts for _ in range(group_size)]
        sampling = Sampling(max_tokens=tokens)
        return list(await asyncio.gather(*(engine.sample(each, sampling, key) for key, each in enumerate(asked))))

    return asyncio.run(everything())


def grouped(prompts: list[IntArray], found: list[Completion], group_size: int) -> list[Group]:
    """Completions as rollouts of tasks."""
    groups = []
    for number, prompt in enumerate(prompts):
        task = Task((Message("user", str(number)),), "", "mismatch")
        own = found[number * group_size : (number + 1) * group_size]
        rollouts = [
            Rollout(
                f"{number}/{index}",
                task,
                (Turn(prompt, each.tokens, each.logprobs, each.versions, Message("assistant", "")),),
                Outcome.FINISHED,
            )
            for index, each in enumerate(own)
        ]
        groups.append(Group(number, task, rollouts))
    return groups


def differences(folder: Path, groups: list[Group], device: str) -> tuple[FloatArray, FloatArray]:
    """The trainer's logprob minus the engine's for every written token, and the engine's: [N], [N]."""
    is_gpu = torch.device(device).type == "cuda"
    trainer = TorchTrainer(device=device, dtype="bfloat16" if is_gpu else "float32", max_tokens=32_768)
    trainer.open(folder, 0)
    batches = pack(groups, None, 0, trainer.max_tokens)
    trainer.annotate(batches, frozenset({Logprobs("proximal")}))
    gaps, behaviors = [], []
    for batch in batches:
        kept = batch.trainable
        gaps.append((batch.logprobs["proximal"][kept] - batch.behavior_logprobs[kept]).float().cpu().numpy())
        behaviors.append(batch.behavior_logprobs[kept].float().cpu().numpy())
    return np.concatenate(gaps), np.concatenate(behaviors)


def figures(gaps: FloatArray, behaviors: FloatArray) -> dict[str, Any]:
    ratios, size = np.exp(gaps), np.abs(gaps)
    mean = float(size.mean())
    return {
        "ratio": ALLOWED / max(mean, 1e-12),
        "tokens": len(gaps),
        "mean_absolute_difference": mean,
        "mean_difference": float(gaps.mean()),
        "quantiles": {str(part): float(np.quantile(size, part)) for part in _QUANTILES},
        "share_outside": float(((ratios < LOW) | (ratios > HIGH)).mean()),
        "mean_ratio": float(ratios.mean()),
        "mean_entropy_sampled": float(-behaviors.mean()),
        "is_reached": mean <= ALLOWED,
    }


def table(found: dict[str, Any]) -> str:
    sizes = ", ".join(f"{float(part):g}: {value:.2g}" for part, value in found["quantiles"].items())
    return "\n".join(
        [
            f"{found['tokens']:,} tokens, {found['mean_entropy_sampled']:.2f} nats each",
            f"mean absolute difference {found['mean_absolute_difference']:.2e} (at most {ALLOWED:g} is wanted)",
            f"ratio outside {LOW} to {HIGH}: {found['share_outside']:.4%} of tokens; mean {found['mean_ratio']:.5f}",
            f"absolute difference by quantile: {sizes}",
        ]
    )


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help=f"smollm2, a folder, or random {', '.join(SHAPES)}")
    parser.add_argument("--prompts", type=int, default=128)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=256)
    output_arguments(parser)
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch:
        is_shape = arguments.model in SHAPES
        folder = (
            prepare(arguments.model, Path(scratch), arguments.device) if is_shape else model_folder(arguments.model)
        )
        prompts = prompts_of(arguments.model, folder, arguments.prompts)
        found = generate(folder, prompts, arguments.tokens, arguments.group_size, arguments.device)
        measured = figures(*differences(folder, grouped(prompts, found, arguments.group_size), arguments.device))
    result = {"benchmark": "mismatch", "model": arguments.model, **measured, **circumstances(arguments.device)}
    publish(result, table(measured), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
