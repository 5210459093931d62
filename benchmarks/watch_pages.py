"""What the pages of `strop watch` cost the server when a ledger holds a million rollouts: milliseconds of a core.

    python -m benchmarks.watch_pages [ROLLOUTS]

The rows are copies of one that a ledger wrote, of four kinds of tasks, with lengths and rewards drawn at random; a page
must take at most 300 ms. *summary* reads the whole ledger and is drawn only when somebody asks for it.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from strop.environments.bundled.arithmetic import Arithmetic
from strop.storage.run_folder import RunFolder
from tests.observe.dashboard.watching import guest
from tests.observe.folders import run_folder

GROUP, TASKS, A_STEP = 8, 50_000, 64
KIND = "arithmetic level 2"
ASKED: tuple[tuple[str, dict[str, str]], ...] = (
    ("now", {}),
    ("curves", {}),
    ("rollouts", {}),
    ("rollouts", {"sort": "reward"}),
    ("rollouts", {"sort": "length"}),
    ("rollouts", {"kind": KIND}),
    ("rollouts", {"kind": KIND, "sort": "length"}),
    ("rollouts", {"kind": KIND, "sort": "reward"}),
    ("rollouts", {"kind": KIND, "reward_from": "2"}),
    ("rollouts", {"fate": "failed"}),
    ("rollout", {"id": "900/3"}),
    ("curriculum", {}),
    ("summary", {}),
)


def fill(folder: RunFolder, groups: int) -> None:
    """In place of what the ledger holds, so many groups."""
    stream, database = random.Random(0), sqlite3.connect(folder.ledger)
    tasks = list(dict.fromkeys(Arithmetic(4).task(number).id for number in range(TASKS)))
    asked = [stream.choice(tasks) for _ in range(groups)]
    fates = ["trained" if number % 4 else "gated" for number in range(groups)]
    made = [(number, place) for number in range(groups) for place in range(GROUP)]
    copies: dict[str, Iterable[dict[str, Any]]] = {
        "tasks": ({"id": name, "level": 1 + place % 4} for place, name in enumerate(tasks)),
        "groups": ({"number": n, "task": asked[n], "version": n // A_STEP, "fate": fates[n]} for n in range(groups)),
        "rollouts": (
            {"id": f"{n}/{i}", "number": n, "task": asked[n], "fate": fates[n], "place": i, "parent": ""}
            | {"tokens": stream.randrange(10, 4000), "reward": float(stream.random() < 0.5)}
            for n, i in made
        ),
        "trainings": (
            {"step": n // A_STEP + 1, "slot": n % A_STEP, "place": i, "number": n, "rollout": f"{n}/{i}"}
            for n, i in made
            if fates[n] == "trained"
        ),
    }
    for table, rows in copies.items():
        write(database, table, rows)
    database.commit()
    database.close()


def write(database: sqlite3.Connection, table: str, rows: Iterable[dict[str, Any]]) -> None:
    """The table's first row, changed."""
    found = database.execute(f"SELECT * FROM {table} LIMIT 1")
    names, first = [column[0] for column in found.description], found.fetchone()
    plain = dict(zip(names, first, strict=True))
    database.execute(f"DELETE FROM {table}")
    marks = ", ".join("?" * len(names))
    database.executemany(f"INSERT INTO {table} VALUES ({marks})", (tuple((plain | row).values()) for row in rows))


def main(rollouts: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = run_folder(Path(scratch) / "runs" / "big")
        fill(folder, rollouts // GROUP)
        print(f"{folder.ledger.stat().st_size / 1e9:.2f} GB")
        client = guest(folder.path.parent)
        for page, asked in ASKED:
            taken = []
            for _ in range(1 if page == "summary" else 4):
                begun = time.process_time()
                assert client.get(f"/{page}", params=asked).status_code == 200
                taken.append(f"{1000 * (time.process_time() - begun):5.0f}")
            print(*taken, "ms", page, *(f"{name}={value}" for name, value in asked.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
