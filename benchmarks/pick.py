"""What a pass-rate estimator about 10 million tasks costs: bytes, and the time of one choice among 64 candidates.

    python benchmarks/pick.py [--tasks 10000000] [--json] [--save NAME]

Every task was tried. A pick draws 64 places, reads their keys off an array, asks the pass-rate estimator, draws one
probability for each
(Thompson) and takes the nearest to one half; only the winner is made. Beside it the same with all 64 tasks made. The
keys of the 10 million are drawn at random, as making every task would take 20 minutes; that changes no lookup. The
`ratio` is the median of a pick to the millisecond that is promised.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))

from strop.control.estimators.level_plus_offset import Offsets
from strop.control.estimators.support.task_table import keys_of
from strop.environments.bundled.countdown import Countdown
from strop.success import kind
from strop.types import SUCCESS, Group, Outcome, Rollout, Task

LIMIT_SECONDS, LIMIT_BYTES = 1e-3, 1e9
CANDIDATES, STEP = 64, 100
ENVS = tuple(Countdown(level) for level in (2, 3, 4, 5))


def measure(count: int, picks: int) -> dict[str, Any]:
    """Fill a pass-rate estimator, choose, learn; the peak is of this process, Python and numpy within."""
    before, keys = _peak(), np.random.default_rng(0).integers(1, 2**64, count, np.uint64)
    kinds = keys_of([kind(env.task(0)) for env in ENVS])
    estimator, seconds = _filled(keys)
    stream = np.random.default_rng(1)

    def scored() -> int:
        places = stream.integers(0, count, CANDIDATES)
        means, variances = estimator.told(keys[places], kinds[places % len(ENVS)], STEP)
        return int(places[np.abs(stream.normal(means, np.sqrt(variances)) - 0.5).argmin()])

    def picked() -> Task:
        return _task(scored())

    def made() -> None:
        estimator.predict([_task(int(place)) for place in stream.integers(0, count, CANDIDATES)], STEP)

    found = {name: _timed(each, picks) for name, each in (("scored", scored), ("pick", picked), ("made", made))}
    learned = _learned(estimator, 512)
    table, peak = estimator._tasks.num_bytes, _peak()
    return {
        "ratio": found["pick"]["median"] / LIMIT_SECONDS,
        "tasks": count,
        "candidates": CANDIDATES,
        "seconds": found | learned | {"fill": seconds},
        "table_bytes": table,
        "bytes_per_task": table / count,
        "peak_bytes": peak,
        "peak_before_bytes": before,
        "is_reached": found["pick"]["median"] <= LIMIT_SECONDS and peak <= LIMIT_BYTES,
    }


def _filled(keys: NDArray[np.uint64]) -> tuple[Offsets, float]:
    """A pass-rate estimator that goes on from a folder in which every key was tried."""
    estimator, stream = Offsets(), np.random.default_rng(2)
    with tempfile.TemporaryDirectory() as folder:
        estimator.save(Path(folder))
        rows = np.zeros(len(keys), estimator._tasks.row)
        rows["key"], rows["known"], rows["version"] = keys, 2.0, stream.integers(0, STEP, len(keys), np.int32)
        rows["logit"] = stream.normal(size=len(keys)).astype(np.float32)
        np.save(Path(folder) / "tasks.npy", rows)
        del rows
        began = time.perf_counter()
        estimator.resume(Path(folder))
    return estimator, time.perf_counter() - began


def _task(place: int) -> Task:
    return ENVS[place % len(ENVS)].task(place // len(ENVS))


def _timed(work: Callable[[], Any], times: int) -> dict[str, float]:
    """Seconds of one call, on the processor: another process on the same core does not count."""
    work()
    taken = []
    for _ in range(times):
        began = time.process_time_ns()
        work()
        taken.append((time.process_time_ns() - began) * 1e-9)
    return {"median": float(np.median(taken)), "p99": float(np.quantile(taken, 0.99))}


def _learned(estimator: Offsets, count: int) -> dict[str, float]:
    """Filing one group, and folding one as a part of `count`."""
    tasks = [_task(place) for place in range(count)]
    groups = [
        Group(
            number,
            task,
            [Rollout(str(place), task, (), Outcome.FINISHED, facts={SUCCESS: float(place % 2)}) for place in range(8)],
            STEP,
        )
        for number, task in enumerate(tasks)
    ]
    began = time.process_time()
    for group in groups:
        estimator.observe(group)
    filed = time.process_time()
    estimator.predict(tasks[:1], STEP + 1)
    return {"observe": (filed - began) / count, "fold": (time.process_time() - filed) / count}


def _peak() -> int:
    """Most memory that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(found: dict[str, Any]) -> str:
    seconds = found["seconds"]
    names = {"scored": "64 places scored", "pick": "and the winner made", "made": "64 tasks made and scored"}
    lines = [f"{found['tasks']:,} tasks tried{'':<12} {'median':>10} {'p99':>10}"]
    for name, words in names.items():
        lines.append(f"{words:<32} {1e6 * seconds[name]['median']:>7.0f} us {1e6 * seconds[name]['p99']:>7.0f} us")
    lines += [
        f"a group filed {1e6 * seconds['observe']:.0f} us, folded with 511 others {1e6 * seconds['fold']:.0f} us",
        f"arrays {found['table_bytes'] / 1e6:.0f} MB, {found['bytes_per_task']:.0f} bytes a task; peak of the process "
        f"{found['peak_bytes'] / 1e6:.0f} MB, {found['peak_before_bytes'] / 1e6:.0f} MB before; "
        f"read from a folder in {seconds['fill']:.1f} s",
        f"promised: 1 ms a pick and 1 GB, {'kept' if found['is_reached'] else 'broken'}",
    ]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000_000)
    parser.add_argument("--picks", type=int, default=2_000)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--save", default="", metavar="NAME", help="also write results/NAME.json")
    arguments = parser.parse_args(words)
    found = measure(arguments.tasks, arguments.picks)
    from machine import circumstances, publish  # only now: it loads torch, which is larger than what is measured

    publish(found | circumstances("cpu"), table(found), arguments)


if __name__ == "__main__":
    main()
