"""Short runs of recipes of every class, compared to the bit: what a change of shape must leave as it is.

`python -m tests.oracle --against REVISION [--only NAME,NAME]` runs them here and at another revision, on the same
machine since bits depend on the processor, and compares digests of weights, metrics and ledger. Names are left out of
them, so that a new name for a metric, a column or a module changes nothing here, and times too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).parent / "oracle.json"
RECIPES = {
    "objective": "d1 aapo gdpo nft",  # first the one that takes longest
    "classics": "grpo ppo dpo sft rloo alp_gmm",
    "reward": "fapo noisy_rewards inverse_spec v_triune",
    "agent": "trace sem mashost openclaw_rl",
    "select": "cures xrpo vade sws",
    "rollout": "r3l echo_ec arrol latr",
    "replay": "slea_rl core spear",
    "guide": "pta_grpo ghpo",
    "value": "v0 dead_end gvl",
    "distill": "hawkeye ton",
    "system": "sapo_sharing rl_scaling_vlm",
    "studies": "mixture per_role",
}
NAMES = [name for names in RECIPES.values() for name in names.split()]
_TEXTS = ("messages", "answer", "task", "id", "parent", "rollout")  # columns of the ledger whose texts are no names
Digests = dict[str, str]


def digests(name: str) -> Digests:
    """What a run of this recipe leaves behind: nothing of it depends on the clock."""
    from strop.catalogue.acts import read_acts
    from strop.catalogue.record import records
    from strop.launch.running.launch import launch
    from strop.models.silence_libraries import hush
    from tests.recipes.test_acts import small

    hush()
    with tempfile.TemporaryDirectory() as root:
        run = small(
            name, read_acts(records()[name].acts), {"MODEL": "pocket", "RUN": f"{root}/other", "PEER": f"{root}/other"}
        )
        run.threads = 1
        launch(run, Path(root), name)
        found = sorted(each.parent for each in Path(root).rglob("ledger.db"))
        return {
            "weights": _digest(_weights(found)),
            "metrics": _digest(row for folder in found for row in _metrics(folder)),
            "ledger": _digest(row for folder in found for row in _ledger(folder / "ledger.db")),
        }


def _digest(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()[:24]


def _weights(folders: list[Path]) -> Iterator[str]:
    """Every tensor and every number of every checkpoint; by content, where names could decide the order."""
    for step in (step for folder in folders for step in sorted(folder.glob("checkpoints/step-*"))):
        yield from sorted(line for path in step.rglob("*.safetensors") for line in _tensors(path))
        yield _numbers(json.loads((step / "roles.json").read_text()))


def _tensors(path: Path) -> Iterator[str]:
    with safe_open(path, "pt") as file:
        for name in file.keys():  # noqa: SIM118  (it is no dictionary)
            tensor = file.get_tensor(name).contiguous()
            content = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
            yield f"{tuple(tensor.shape)} {hashlib.sha256(content).hexdigest()}"


def _metrics(folder: Path) -> list[str]:
    """Every measured metric of each step; timing is in a file of its own."""
    return [_numbers(json.loads(line)) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def _ledger(path: Path) -> Iterator[str]:
    """Every number and every text that is no name, row by row."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY rootpage").fetchall()
        for (table,) in tables:
            cursor = database.execute(f"SELECT * FROM {table} ORDER BY rowid")
            columns = [column[0] for column in cursor.description]
            for row in cursor:
                yield " ".join(_cell(column, value) for column, value in zip(columns, row, strict=True))


def _cell(column: str, value: Any) -> str:
    if isinstance(value, bytes):
        return _turns(value) if column == "turns" else hashlib.sha256(value).hexdigest()
    if not isinstance(value, str):
        return repr(value)
    if column in _TEXTS:
        return value
    return _numbers(json.loads(value)) if value[:1] in ("{", "[") else ""


def _turns(data: bytes) -> str:
    """As `storage/ledger/turn_bytes.py` writes them, without the names of fields."""
    start = 4 + int.from_bytes(data[:4], "little")
    return f"{_numbers(json.loads(data[4:start]))} {hashlib.sha256(data[start:]).hexdigest()}"


def _numbers(data: Any) -> str:
    return " ".join(sorted(_leaves(data)))


def _leaves(data: Any) -> Iterator[str]:
    """Numbers anywhere within; keys and texts are names or may be."""
    if isinstance(data, dict):
        for each in data.values():
            yield from _leaves(each)
    elif isinstance(data, list):
        for each in data:
            yield from _leaves(each)
    elif isinstance(data, bool | int | float) or data is None:
        yield repr(data)


def at(revision: str, names: list[str], processes: int) -> dict[str, Digests]:
    """What the runs leave behind at a revision, by its own copy of this module."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
        words = ["--write", "--only", ",".join(names), "--processes", str(processes)]
        env = os.environ | {"PYTHONPATH": folder}
        subprocess.run([sys.executable, "-m", "tests.oracle", *words], cwd=folder, env=env, check=True)
        found: dict[str, Digests] = json.loads((Path(folder) / "tests" / TABLE.name).read_text())
        return {name: found[name] for name in names}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--against", metavar="REVISION", help="compare with the runs of another revision")
    which.add_argument("--write", action="store_true", help=f"write the digests to {TABLE.name} and compare nothing")
    parser.add_argument("--only", default=",".join(NAMES), help="recipes, joined by commas")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    names = chosen.only.split(",")
    kept = at(chosen.against, names, chosen.processes) if chosen.against else {}
    with multiprocessing.get_context("spawn").Pool(chosen.processes) as pool:
        found = dict(zip(names, pool.map(digests, names, chunksize=1), strict=True))
    if chosen.write:
        TABLE.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    wrong = {name: [key for key in each if kept[name][key] != each[key]] for name, each in found.items()}
    for name, keys in wrong.items():
        print(f"{name}: {', '.join(keys) + ' differ' if keys else 'same bits'}")
    return int(any(wrong.values()))


if __name__ == "__main__":
    sys.exit(main())
