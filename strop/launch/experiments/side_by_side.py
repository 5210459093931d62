"""Parallel execution of many runs, each in a process forked with its imports loaded.

A finished run is skipped; an unfinished one resumes from its newest complete checkpoint, to the same bits; a failed one
is reported and does not stop the others.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from strop.errors import StropError
from strop.launch.experiments.preloaded_forks import warm
from strop.observe.run_files.run_info import read_summary
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.run_folder import WARMUP, RunFolder
from strop.workers.child import ending

_LOOK = 1.0  # seconds between two looks at what has become of them
_STOPPED = 3  # exit code of a run that was told to stop and has saved where it was
_OF_GPU = 0.92  # of its memory is shared out; every process takes half a gigabyte beside, for the driver


@dataclass(frozen=True)
class Job:
    """One of many runs: the name of its folder, and the function that builds it in its process."""

    name: str
    make: Callable[[], Run]  # it is sent there: a function of a module, or a partial of one


def how_many(jobs: int, threads: int = 1) -> int:
    """As many side by side as cores allow, and no more than lets all be done in as few rounds."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    at_most = max(1, cores // threads)
    rounds = -(-jobs // at_most)
    return -(-jobs // max(rounds, 1)) or 1


def is_finished(folder: Path) -> bool:
    return bool(read_summary(RunFolder(folder)).get("is_complete"))


@dataclass
class SideBySide:
    """Executes all jobs, `processes` at a time, and calls `tell` regularly."""

    root: Path
    processes: int
    is_on_gpu: bool = False  # then its memory is shared out among them
    tell: Callable[[], None] = lambda: None
    _failed: dict[str, str] = field(default_factory=dict, repr=False)  # why, by name
    _waiting: deque[Job] = field(default_factory=deque, repr=False)
    _running: dict[str, BaseProcess] = field(default_factory=dict, repr=False)
    _interrupts: int = 0

    def run(self, jobs: Sequence[Job]) -> None:
        """Returns when all are finished; raises once none runs any more, and names those that failed."""
        self.root.mkdir(parents=True, exist_ok=True)
        self._waiting = deque(job for job in jobs if not is_finished(self.root / job.name))
        context = warm()
        share = _OF_GPU / min(self.processes, len(self._waiting) or 1) if self.is_on_gpu else 0.0
        while self._waiting or self._running:
            try:
                while self._waiting and len(self._running) < self.processes:
                    job = self._waiting.popleft()
                    self._running[job.name] = context.Process(target=_work, args=(job, self.root, share), name=job.name)
                    self._running[job.name].start()
                wait([process.sentinel for process in self._running.values()], _LOOK)
                self._collect()
                self.tell()
            except KeyboardInterrupt:
                self._interrupt()
        if self._interrupts:
            raise KeyboardInterrupt
        if self._failed:
            told = "; ".join(f"{name}: {why}" for name, why in self._failed.items())
            raise StropError(
                f"{len(self._failed)} of {len(jobs)} runs failed, the others are kept in {self.root}, and the same "
                f"command runs only what is missing. {told}"
            )

    def _collect(self) -> None:
        for name, process in list(self._running.items()):
            if process.exitcode is None:
                continue
            del self._running[name]
            if process.exitcode and not (self._interrupts and process.exitcode == _STOPPED):
                self._failed[name] = _why(process.exitcode, log_of(self.root, name))

    def _interrupt(self) -> None:
        """Nothing more begins; the first lets steps end and be saved, the second ends runs at once."""
        self._interrupts += 1
        self._waiting.clear()
        if self._interrupts == 1:
            print(
                f"\n{len(self._running)} runs finish their step and save; press Ctrl-C again to stop at once. The same "
                "command goes on later",
                file=sys.stderr,
            )
        for process in self._running.values():
            with suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGINT)


def log_of(root: Path, name: str) -> Path:
    """What a run would have written on a terminal."""
    return root / f"{name}.log"


def _why(code: int, log: Path) -> str:
    if code == _STOPPED:
        return "it was told to stop"
    told = [line for line in log.read_text().splitlines() if line.strip()] if log.is_file() else []
    if code < 0 or not told:
        return f"its process ended by {ending(code)}; see {log}"
    return f"{told[-1]}; see {log}"


def _work(job: Job, root: Path, share: float) -> None:
    """In the process of one run."""
    os.setsid()  # a Ctrl-C reaches it through whoever started it, and once
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    with log_of(root, job.name).open("a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    try:
        summary = _begin_or_go_on(job, root, share)
    except BaseException as error:
        traceback.print_exc()
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr, flush=True)
        sys.exit(_STOPPED if isinstance(error, KeyboardInterrupt) else 1)
    sys.exit(0 if summary["is_complete"] else _STOPPED)


def _begin_or_go_on(job: Job, root: Path, share: float) -> dict[str, Any]:
    import torch

    from strop.launch.running.launch import launch, relaunch
    from strop.models import torch_setup

    torch.set_num_threads(1)  # until the run says how many
    if share:
        torch_setup.share_gpu(share)
    folder = RunFolder(root / job.name)
    if checkpoint.listed(folder.checkpoints) or (folder.path / WARMUP).exists():
        return relaunch(folder.path)
    if folder.path.exists():  # it was ended before it had anything to go on from
        folder.acquire()
        folder.release()
        shutil.rmtree(folder.path)
    return launch(job.make(), root, job.name)


def _end_with_parent() -> None:
    """A run whose parent was killed would hold its folder, and keep the next try from going on with it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
