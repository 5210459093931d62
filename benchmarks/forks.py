"""What forks cost: a root and eight branches of it, in the engine's work and in the trainer's.

    python benchmarks/forks.py [--groups 8] [--env arithmetic:6] [--json] [--save NAME]

A real run of one step: each group is one root and eight branches from its four most uncertain tokens. The engine's
work is every token that goes through the model, sampled or read; what the sampled tokens alone would take is each of
them once, and each task's prompt once. The trainer lays out every rollout whole and computes a prefix that several
share once: beside its count stands that of the distinct prefixes, counted one by one. `ratio` is the engine's work over
that of the sampled tokens alone: at most 1.15 is wanted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from machine import circumstances, output_arguments, publish

sys.path.insert(0, str(Path(__file__).parent.parent))

from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.launch.running.launch import launch
from strop.recipes.rollout.ettrl import EntropyForks, ettrl
from strop.recipes.setting import Setting
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.batch_relative import BatchStandard
from strop.training.machine.packed_sequences import Sequences
from strop.training.pack import pack
from strop.types import Group

LIMIT = 1.15
POSITIONS, BRANCHES = 4, 2


def measure(env: str, groups: int, model: str) -> dict[str, Any]:
    """One step, then what the engine and the ledger say of it."""
    setting = Setting(env, model, steps=1, groups_per_step=groups, group_size=1, heldout_tasks=0, heldout_every=0)
    forks, credit = EntropyForks(POSITIONS, BRANCHES), AlongTree(BatchStandard())  # one start has no siblings at first
    run = replace(ettrl(setting), strategy=forks, advantage=credit)
    with tempfile.TemporaryDirectory() as folder:
        launch(run, Path(folder), "forks")
        groups_made = Ledger(RunFolder(Path(folder) / "forks").ledger, read_only=True).trained_groups(1)
    assert isinstance(run.engine, TorchEngine)
    return _engine(run.engine, groups_made) | _trainer(groups_made)


def _engine(engine: TorchEngine, groups: Sequence[Group]) -> dict[str, Any]:
    """Tokens of the run's engine; every prompt must be read once, whatever comes after."""
    prompts = sum(len(group.rollouts[0].turns[0].prompt) for group in groups)  # of roots: nothing was begun
    work, alone = engine.num_generated + engine.num_prefilled, engine.num_generated + prompts
    return {
        "rollouts": sum(len(group.rollouts) for group in groups),
        "sampled": engine.num_generated,
        "prompts": prompts,
        "read": engine.num_prefilled,
        "reused": engine.num_reused,
        "work": work,
        "ratio": work / alone,
        "is_reached": work / alone <= LIMIT,
    }


def _trainer(groups: Sequence[Group]) -> dict[str, Any]:
    """Tokens laid out and computed, beside the distinct prefixes of what predicts something, counted plainly."""
    laid = computed = distinct = 0
    for batch in pack(groups, None, 0, 1 << 20, "group"):
        lengths = [size for size in batch.segments.bincount().tolist() if size]
        sequences = Sequences(batch.tokens, batch.positions, lengths, "cpu")
        laid, computed = laid + len(batch.tokens), computed + sequences.num_computed
        segments = [part.tolist() for part in torch.split(batch.tokens, lengths)]
        distinct += len({tuple(each[:end]) for each in segments for end in range(1, len(each))})
    return {"laid_out": laid, "computed": computed, "distinct": distinct}


def table(result: dict[str, Any]) -> str:
    names = ("rollouts", "sampled", "prompts", "read", "reused", "work", "laid_out", "computed", "distinct")
    rows = [f"| {name.replace('_', ' ')} | {result[name]:,} |" for name in names]
    told = f"engine's work over that of sampled tokens alone: {result['ratio']:.3f} (wanted: at most {LIMIT})"
    return "\n".join(["| tokens | |", "|---|---|", *rows, "", told])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=8, help="each of one root and eight branches")
    parser.add_argument("--env", default="arithmetic:6")
    parser.add_argument("--model", default=Setting().model)
    output_arguments(parser)
    arguments = parser.parse_args()
    result = {"benchmark": "forks"} | measure(arguments.env, arguments.groups, arguments.model)
    publish(result | circumstances("cpu"), table(result), arguments)


if __name__ == "__main__":
    main()
