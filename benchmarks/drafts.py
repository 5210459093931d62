"""How much sooner few sequences are written with a draft that learns meanwhile (aurora) than without one.

    python benchmarks/drafts.py [--model smollm2] [--before 1024] [--sequences 8] [--tokens 256] [--rounds 8]
        [--guesses 2 3 4] [--draws race] [--json] [--save NAME]

Each draft begins knowing nothing and has lessons from its own engine's completions: first from `--before` of them,
written
128 at a time and without a guess, as in the earlier steps of a run. Then every engine answers the same tasks with the
same keys, round by round in turn, and drafts go on learning. Tokens must be those of the engine without a draft: `same`
counts such completions. `ratio` is tokens per second with the quickest draft over those without; wanted is 1.3 with 8
sequences of SmolLM2 on a GPU. A model that was trained for its tasks is surer of what it says, and should be easier to
guess: name the folder of its checkpoint.
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

from strop.backends import Completion
from strop.generate.engines.paged.draft_model import Draft
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.models.loading.model_names import model_folder
from strop.types import IntArray, Sampling

NEED = 1.3
_TOGETHER = 128  # completions written at once before the measurement
_PROMPT = 256  # tokens at most


class Side:
    """One engine, its rounds, and how long they took."""

    def __init__(self, folder: Path, draft: Draft | None, arguments: argparse.Namespace) -> None:
        dtype = "bfloat16" if arguments.device.startswith("cuda") else "float32"
        self.draft, self._device, self._runner = draft, arguments.device, asyncio.Runner()
        self._engine = PagedEngine(
            rows=max(arguments.sequences, _TOGETHER),
            device=arguments.device,
            dtype=dtype,
            draft=draft,
            memory=0.1,
            context=arguments.tokens + _PROMPT,
            races=arguments.draws == "race",
        )
        self._engine.open(folder)
        self._sampling = Sampling(max_tokens=arguments.tokens)
        self.rates: list[float] = []  # tokens per second
        self.per_look: list[float] = []  # tokens for each look of the model

    def learn(self, prompts: list[IntArray], first_key: int) -> None:
        """Let the draft see completions to these."""
        self._runner.run(self._answers(prompts, first_key))

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
    """All sides in turn; the first round, in which steps are captured, does not count."""
    plain = Side(folder, None, arguments)
    drafts = {count: Side(folder, Draft(count, rows=arguments.sequences), arguments) for count in arguments.guesses}
    size, before = arguments.sequences, arguments.before
    prompts = prompts_of(arguments.model, folder, before + size * (arguments.rounds + 1))
    for side in drafts.values():
        side.learn(prompts[:before], 0)
    same = dict.fromkeys(drafts, 0)
    for first in range(before, len(prompts), size):
        asked = prompts[first : first + size]
        exact = plain.round(asked, first)
        for count, side in drafts.items():
            pairs = zip(exact, side.round(asked, first), strict=True)
            same[count] += sum(np.array_equal(one.tokens, other.tokens) for one, other in pairs)
    for side in (plain, *drafts.values()):
        side.close()
    usual = float(np.mean(plain.rates[1:]))
    return {"tokens_per_second": usual, "completions": size * (arguments.rounds + 1)} | {
        "drafts": [
            {
                "guesses": count,
                "ratio": float(np.mean(side.rates[1:])) / usual,
                "tokens_per_second": float(np.mean(side.rates[1:])),
                "tokens_per_look": float(np.mean(side.per_look[1:])),
                "same": same[count],
                "rates": [round(each, 1) for each in side.rates],
            }
            for count, side in drafts.items()
        ]
    }


def table(found: dict[str, Any]) -> str:
    lines = [f"without a draft {found['tokens_per_second']:,.0f} tokens/s (wanted with one: {NEED} times)", ""]
    lines += ["| guesses | tokens/s | ratio | tokens for each look | same completions |", "|---|---|---|---|---|"]
    lines += [
        f"| {each['guesses']} | {each['tokens_per_second']:,.0f} | {each['ratio']:.2f} | "
        f"{each['tokens_per_look']:.2f} | {each['same']} of {found['completions']} |"
        for each in found["drafts"]
    ]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help=f"smollm2, a folder, or random {', '.join(SHAPES)}")
    parser.add_argument("--sequences", type=int, default=8, help="written at once")
    parser.add_argument("--tokens", type=int, default=256, help="of a completion at most")
    parser.add_argument("--before", type=int, default=1024, help="completions that drafts have lessons from first")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--guesses", type=int, nargs="+", default=[2, 3, 4], help="tokens ahead, of a draft each")
    parser.add_argument("--draws", choices=["race", "probability"], default="race", help="how tokens are drawn, by all")
    output_arguments(parser)
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch:
        is_random = arguments.model in SHAPES
        folder = (
            prepare(arguments.model, Path(scratch), arguments.device) if is_random else model_folder(arguments.model)
        )
        found = compare(folder, arguments)
    asked = {name: getattr(arguments, name) for name in ("model", "before", "sequences", "tokens", "rounds", "draws")}
    ratio = max(each["ratio"] for each in found["drafts"])
    result = {"benchmark": "drafts", "ratio": ratio, "is_reached": ratio >= NEED, **found, **asked}
    publish(result | circumstances(arguments.device), table(found), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
