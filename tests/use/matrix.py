"""The matrix of every recipe in ten situations of a user: runs its cells, and keeps what came of them in results.json.

    python -m tests.use.matrix [jobs=N] [only=grpo,ppo] [situations=1,4] [again=red|all]

Cells that are known are left out, unless `again` asks for those that do not act (red) or for all. What is known is
written after every few cells, so that it goes on where it was stopped; then docs/use.md is written anew.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from strop.catalogue.record import Record, records
from tests.use.cells import Cell, play
from tests.use.models import made
from tests.use.situations import BY_NUMBER, SITUATIONS, uses_parts

RESULTS = Path(__file__).parent / "results.json"
DEADLINE = 240.0  # seconds of a cell
LEFT_OUT = {"smollm2"}  # its model comes in a package of its own
_OFTEN = 20  # cells between writes
Key = tuple[str, int]  # recipe and situation


def read_results(path: Path = RESULTS) -> dict[Key, Cell]:
    """What is known, by recipe and situation."""
    rows = json.loads(path.read_text()) if path.is_file() else {}
    return {(name, int(number)): Cell(*cell) for name, cells in rows.items() for number, cell in cells.items()}


def write_results(found: Mapping[Key, Cell], path: Path = RESULTS) -> None:
    """One line for each cell, in order."""
    by_recipe: dict[str, list[str]] = {}
    for name, number in sorted(found):
        cell = found[name, number]
        row = json.dumps([cell.verdict, cell.said, cell.lean])
        by_recipe.setdefault(name, []).append(f'  "{number}": {row}')
    cells = [f"{json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n}" for name, rows in by_recipe.items()]
    path.write_text("{\n" + ",\n".join(cells) + "\n}\n")


def every_cell() -> list[Key]:
    """All recipes of a situation before the next situation."""
    return [(name, situation.number) for situation in SITUATIONS for name in records() if name not in LEFT_OUT]


def with_signs(found: Mapping[Key, Cell]) -> dict[Key, Cell]:
    """Cells on other scales whose right rollouts are pushed down, where those of the same run on 0 and 1 are not."""
    checked = dict(found)
    for (name, number), cell in found.items():
        plain = found.get((name, 1))
        if number == 4 and plain is not None and cell.verdict == "acts" and (plain.lean or 0) > 0 > (cell.lean or 0):
            checked[name, number] = Cell("sign", f"right - wrong: {plain.lean} on 0 and 1, {cell.lean} here", cell.lean)
    return checked


@dataclass
class Child:
    """A cell that is being played in a process of its own."""

    key: Key
    process: Any
    answer: Connection
    folder: Path
    begun: float

    def outcome(self) -> Cell | None:
        """What came of it; None: it is still at it."""
        if self.answer.poll():
            try:
                return Cell(*self.answer.recv())
            except EOFError:
                return Cell("traceback", f"the process died with {self.process.exitcode}")
        if time.monotonic() - self.begun > DEADLINE:
            return Cell("late", f"not over after {DEADLINE:.0f} s")
        return None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        shutil.rmtree(self.folder, ignore_errors=True)


def started(key: Key, record: Record, models: Mapping[str, str]) -> Child:
    """Forked, so that imports are paid once, and whatever a run leaves behind goes with its process."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="use-", dir=memory if os.access(memory, os.W_OK) else None))
    mine, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(key, record, models, folder, theirs))
    process.start()
    theirs.close()
    return Child(key, process, mine, folder, time.monotonic())


def _child(key: Key, record: Record, models: Mapping[str, str], folder: Path, answer: Connection) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    cell = play(record, BY_NUMBER[key[1]], models, folder)
    answer.send((cell.verdict, cell.said, cell.lean))
    answer.close()
    os._exit(0)


def played(keys: list[Key], jobs: int) -> Iterator[tuple[Key, Cell, float]]:
    """Cells as they come to their end."""
    models, known, waiting = made(), records(), list(reversed(keys))
    running: list[Child] = []
    gc.collect()
    gc.freeze()  # or each child would look through, and so copy, all that was imported
    while waiting or running:
        while waiting and len(running) < jobs:
            key = waiting.pop()
            running.append(started(key, known[key[0]], models))
        for child in list(running):
            if (cell := child.outcome()) is not None:
                child.end()
                running.remove(child)
                yield child.key, cell, time.monotonic() - child.begun
        time.sleep(0.01)


def run(jobs: int, keys: list[Key]) -> dict[Key, Cell]:
    """Play these cells; those of stubs are those of numbers where a recipe names no part."""
    found = read_results()
    bare = {key for key in keys if key[1] == 9 and not uses_parts(key[0])}
    try:
        for place, (key, cell, seconds) in enumerate(played([key for key in keys if key not in bare], jobs), 1):
            found[key] = cell
            told = f" {cell.said}" if cell.said else ""
            print(f"{place}/{len(keys) - len(bare)} {key[0]} {key[1]} {seconds:.1f}s {cell.verdict}{told}", flush=True)
            if place % _OFTEN == 0:
                write_results(found)
    finally:
        found |= {key: found[key[0], 1] for key in bare if (key[0], 1) in found}
        write_results(found := with_signs(found))
    return found


def main(words: list[str]) -> None:
    asked = dict(word.split("=", 1) for word in words)
    found, again = read_results(), asked.get("again", "")
    names = set(asked["only"].split(",")) if "only" in asked else None
    numbers = {int(each) for each in asked["situations"].split(",")} if "situations" in asked else set(BY_NUMBER)
    keys = [
        key
        for key in every_cell()
        if (names is None or key[0] in names)
        and key[1] in numbers
        and (key not in found or again == "all" or (again == "red" and found[key].is_red))
    ]
    run(int(asked.get("jobs", "1")), keys)
    from tests.use.page import write_page

    write_page()


if __name__ == "__main__":
    main(sys.argv[1:])
