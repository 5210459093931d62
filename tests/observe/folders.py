"""Run folders without a run: written by the project's own classes, with metrics that are known."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np

from strop.cli.fields.overrides import find_recipe, make_run
from strop.environments.bundled.arithmetic import Arithmetic
from strop.observe.run_files.jsonl_journals import Journal
from strop.pocket.tokenizer import build_tokenizer
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.storage.run_source import to_source
from strop.types import SUCCESS, Group, Message, Outcome, Rollout, Task, Turn

TOKENIZER = build_tokenizer()


def turn(completion: str, heard: str = "", version: int = 0) -> Turn:
    """A turn that read `heard` and wrote `completion`."""
    tokens = np.array(TOKENIZER.encode(completion + "<|end|>").ids, dtype=np.int64)
    prompt = np.array(TOKENIZER.encode(heard).ids, dtype=np.int64)
    count = len(tokens)
    logprobs, versions = np.full(count, -0.5, np.float32), np.full(count, version, np.int64)
    return Turn(prompt, tokens, logprobs, versions, Message("assistant", completion))


def long_turn(count: int) -> Turn:
    """A completion of so many letters, one token each."""
    tokens, plain = np.full(count, TOKENIZER.encode("y").ids[0], np.int64), np.zeros(0, np.int64)
    return Turn(
        plain, tokens, np.zeros(count, np.float32), np.zeros(count, np.int64), Message("assistant", "y" * count)
    )


def rollout(task: Task, name: str, reward: float, *turns: Turn) -> Rollout:
    marks: Any = {"rewards": {"outcome": reward}, "facts": {SUCCESS: reward}}
    return Rollout(name, task, turns, Outcome.FINISHED, reward=reward, **marks)


def run_folder(path: Path, steps: int = 60, completion: str = "", planned: int = 0) -> RunFolder:
    """A run of `steps` steps; `completion` is what a model wrote in its first rollout."""
    folder = RunFolder(path)
    folder.path.mkdir(parents=True)
    run = make_run(find_recipe("pocket"), {"steps": str(planned or steps)})
    folder.recipe.write_text(to_source(run, "a run"))
    _write_rows(folder, steps)
    _write_ledger(folder, steps, completion)
    checkpoint = folder.checkpoints / f"step-{steps}"
    checkpoint.mkdir(parents=True)
    TOKENIZER.save(str(checkpoint / "tokenizer.json"))
    summary = {"recipe": "pocket", "seed": 0, "is_complete": not planned, "peak_rss_bytes": 812_000_000}
    folder.summary.write_text(json.dumps(summary))
    return folder


def _write_rows(folder: RunFolder, steps: int) -> None:
    journal, stream = Journal(folder.metrics, folder.timing), random.Random(0)
    for step in range(steps + 1):
        learned = 1 - math.exp(-step / 25)
        accuracy = 0.22 + 0.55 * learned
        metrics = {
            "reward": accuracy + stream.gauss(0, 0.05),
            "advantage": 0.5,
            "entropy": 0.42 - 0.25 * learned + stream.gauss(0, 0.01),
            "length": 24 + 6 * learned + stream.gauss(0, 0.5),
            "kl": 0.0004 * step + abs(stream.gauss(0, 0.002)),
            "clipped_share": 0.01 + abs(stream.gauss(0, 0.01)),
            "no_contrast_share": 0.1 + 0.3 * learned + abs(stream.gauss(0, 0.03)),
            "lag": 0.0,
            "grad_norm": 0.5 + stream.random(),
            "rollouts": 64.0 * step,
            "tokens_generated": 1700.0 * step,
            "tokens_trained": 1500.0 * step,
        }
        heldout = {"heldout": accuracy, "heldout_low": accuracy - 0.08, "heldout_high": accuracy + 0.07}
        shown = heldout if step == 0 else metrics | (heldout if step % 10 == 0 or step == steps else {})
        rate = 1700 / 1.4 + stream.gauss(0, 60)
        timing = {"seconds": 1.4, "tokens_per_second": rate} if step else {"seconds": 0.0}
        journal.stepped(step, shown, timing)


def _write_ledger(folder: RunFolder, steps: int, completion: str) -> None:
    ledger, env, drawn = Ledger(folder.ledger), Arithmetic(4), list[Group]()
    for number in range(2 * steps):
        step, task = number // 2 + 1, env.task(number)
        right = env.solution(task)
        wrong = completion if completion and number == 0 else right[:-1] + "?"
        first = rollout(task, f"{number}/0", 1.0, turn(right))
        second = rollout(task, f"{number}/1", 0.0, turn(wrong), turn("sorry", "<|tool|>try <b>again</b><|end|>"))
        failed = Rollout(f"{number}/2", task, (), Outcome.FAILED, error="environment arithmetic: gone")
        group = Group(number, task, [first, second, failed] if number % 20 == 0 else [first, second], step - 1)
        ledger.admitted(number, task, step - 1)
        kept = group if number % 4 != 3 else None
        ledger.finished(group, kept, "" if kept else "all rewards are 1", step - 1)
        drawn += [kept] if kept else []
        if number % 2:
            ledger.trained(drawn, step)
            drawn = []
    ledger.close()
