"""How much sooner few sequences are written with a draft that learns meanwhile (aurora) than without one.

    python benchmarks/drafts.py [--model smollm2] [--sequences 8] [--tokens 256] [--rounds 24] [--guesses 4] [--json]

Two engines answer the same tasks with the same keys, round by round in turn; the draft begins knowing nothing and has
lessons from its own engine's replies. Tokens of both must be the same: `same` counts such replies. `ratio` is tokens
per second with the draft over those without, both of the second half of the rounds; wanted is 1.3 with 8 sequences of
SmolLM2 on a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import circumstances, output_arguments, publish, synchronize
from mismatch import prompts_of
from shapes import SHAPES, prepare

from strop.generate.engines.draft import Draft
from strop.generate.engines.paged import PagedEngine
from strop.machines import Completion
from strop.models.names import model_folder
from strop.types import IntArray, Sampling

NEED = 1.3


class Side:
    """One engine, its rounds, and how long they took."""

    def __init__(self, folder: Path, draft: Draft | None, arguments: argparse.Namespace) -> None:
        dtype = "bfloat16" if arguments.device.startswith("cuda") else "float32"
        self.draft, self._device, self._runner = draft, arguments.device, asyncio.Runner()
        self._engine = PagedEngine(rows=arguments.sequences, device=arguments.device, dtype=dtype, draft=draft)
        self._engine.open(folder)
        self._sampling = Sampling(max_tokens=arguments.tokens)
        self.rates: list[float] = []  # tokens per second
        self.per_look: list[float] = []  # tokens for each look of the model

    def round(self, prompts: list[IntArray], first_key: int) -> list[Completion]:
        self._engine.forget()
        synchronize(self._device)
        start = time.perf_counter()
        found = self._runner.run(self._answers(prompts, first_key))
        synchronize(self._device)
        self.rates.append(sum(len(each.tokens) for each in found) / (time.perf_counter() - start))
        if self.draft is not None:
            self.per_look += self.draft.learn(()).values()
        return found

    def close(self) -> None:
        self._runner.close()

    async def _answers(self, prompts: list[IntArray], first_key: int) -> list[Completion]:
        asked = (self._engine.sample(each, self._sampling, first_key + key) for key, each in enumerate(prompts))
        return list(await asyncio.gather(*asked))


def compare(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Both sides in turn."""
    draft = Draft(tokens=arguments.guesses, rows=arguments.sequences)
    sides = {"plain": Side(folder, None, arguments), "draft": Side(folder, draft, arguments)}
    prompts = prompts_of(arguments.model, folder, arguments.sequences * arguments.rounds)
    same = count = 0
    for number in range(arguments.rounds):
        first = number * arguments.sequences
        asked = prompts[first : first + arguments.sequences]
        plain, guessed = (side.round(asked, first) for side in sides.values())
        same += sum(np.array_equal(one.tokens, other.tokens) for one, other in zip(plain, guessed, strict=True))
        count += len(plain)
    for side in sides.values():
        side.close()
    half = arguments.rounds // 2
    rates = {name: float(np.mean(side.rates[half:])) for name, side in sides.items()}
    return {
        "ratio": rates["draft"] / rates["plain"],
        "tokens_per_second": rates,
        "tokens_per_look": [round(each, 3) for each in sides["draft"].per_look],
        "rates": {name: [round(each, 1) for each in side.rates] for name, side in sides.items()},
        "same": same,
        "replies": count,
    }


def table(found: dict[str, Any]) -> str:
    looks, rates = found["tokens_per_look"], found["tokens_per_second"]
    return "\n".join(
        [
            f"without a draft {rates['plain']:,.0f} tokens/s, with one {rates['draft']:,.0f}: "
            f"ratio {found['ratio']:.2f} (wanted: {NEED})",
            f"tokens for each look of the model: {looks[0]:.2f} in the first round, {looks[-1]:.2f} in the last",
            f"{found['same']} of {found['replies']} replies have the same tokens",
        ]
    )


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help=f"smollm2, a folder, or random {', '.join(SHAPES)}")
    parser.add_argument("--sequences", type=int, default=8, help="written at once")
    parser.add_argument("--tokens", type=int, default=256, help="of a reply at most")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--guesses", type=int, default=4, help="tokens ahead")
    output_arguments(parser)
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch:
        is_random = arguments.model in SHAPES
        folder = (
            prepare(arguments.model, Path(scratch), arguments.device) if is_random else model_folder(arguments.model)
        )
        found = compare(folder, arguments)
    asked = {name: getattr(arguments, name) for name in ("model", "sequences", "tokens", "rounds", "guesses")}
    result = {"benchmark": "drafts", **found, "is_reached": found["ratio"] >= NEED, **asked}
    publish(result | circumstances(arguments.device), table(found), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
