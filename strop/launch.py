"""From a `Run` to a trained model: open the parts, start or resume, train, leave everything on disk."""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from strop import checkpoint
from strop.advice import advice
from strop.errors import CheckpointError, ConfigurationError, StropError
from strop.evaluation import evaluate, heldout_metrics
from strop.filter.score import Scorer
from strop.folder import RunFolder, fresh_folder, read_rows
from strop.generate.model_folder import check_model_folder
from strop.generate.policy import Policy
from strop.ledger import Ledger
from strop.observe.journal import Journal
from strop.observe.report import write_report
from strop.observe.selection import selection_of
from strop.observe.status import STOP, Status
from strop.pipeline import Flow, Progress, Watcher, is_spent, train
from strop.preflight import check
from strop.roles import Metrics
from strop.run import Run
from strop.source import from_source, to_source
from strop.stopping import gentle_stop

_KEPT = 2  # checkpoints; the one before the newest serves if the newest is damaged
POCKET = Path(__file__).parent / "pocket" / "model"


@dataclass
class Watchers:
    """Several watchers as one."""

    each: Sequence[Watcher]

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        for watcher in self.each:
            watcher.stepped(step, metrics, timing)


def model_folder(model: str) -> Path:
    """Where a run's model lies."""
    return POCKET if model == "pocket" else Path(model)


def launch(run: Run, root: Path = Path("runs"), name: str = "", watchers: Sequence[Watcher] = ()) -> dict[str, Any]:
    """Start a new run and train it to the end; returns its summary."""
    check(run)
    check_model_folder(model_folder(run.model))
    for doubt in advice(run):
        print(f"warning: {doubt}", file=sys.stderr)
    folder = fresh_folder(root, name or f"{run.recipe}-seed{run.seed}")
    with _owned(folder):
        folder.recipe.write_text(to_source(run, f"strop run {folder.path.name}: {run.recipe}, seed {run.seed}."))
        summary = _conduct(run, folder, watchers, resume=False)
    write_report(folder)
    return summary


def relaunch(path: Path, watchers: Sequence[Watcher] = ()) -> dict[str, Any]:
    """Go on with a run from its newest whole checkpoint."""
    folder = RunFolder(path)
    if not folder.recipe.is_file():
        raise ConfigurationError(f"{path} is no run folder: it has no recipe.py")
    run: Run = from_source(folder.recipe)
    check_model_folder(model_folder(run.model))
    with _owned(folder):
        summary = _conduct(run, folder, watchers, resume=True)
    write_report(folder)
    return summary


@contextmanager
def _owned(folder: RunFolder) -> Iterator[None]:
    folder.acquire()
    try:
        yield
    finally:
        folder.release()


def _conduct(run: Run, folder: RunFolder, watchers: Sequence[Watcher], resume: bool) -> dict[str, Any]:
    torch.set_num_threads(run.threads)
    # the promise of the same bits is for CPUs; on a GPU it would cost much and hold between equal machines at best
    torch.use_deterministic_algorithms(not _uses_gpu(run), warn_only=True)
    torch.manual_seed(run.seed)
    try:
        return asyncio.run(_train(run, folder, watchers, resume))
    except sqlite3.OperationalError as error:
        raise CheckpointError(f"could not write {folder.ledger} ({error}): free some space and resume") from error
    except OSError as error:
        if error.errno is None or isinstance(error, ConnectionError):
            raise
        raise StropError(f"{error}: mend it, then go on with: strop train --resume {folder.path}") from error


async def _train(run: Run, folder: RunFolder, watchers: Sequence[Watcher], resume: bool) -> dict[str, Any]:
    model = model_folder(run.model)
    policy = _open(run, model)
    ledger, journal, progress = Ledger(folder.ledger), Journal(folder.metrics, folder.timing), Progress()
    scorer = Scorer(run.rewards, run.reward_seconds, run.reward_workers)
    judge = Scorer(run.evaluation.rewards, run.reward_seconds, run.reward_workers)

    async def heldout() -> Metrics:
        metrics = heldout_metrics(
            await evaluate(run.worlds, run.evaluation, policy, judge, run.seed, run.world_seconds)
        )
        run.engine.forget()  # or kept prefixes would change the last bits of what a resumed run generates
        return metrics

    def save(step: int) -> None:
        ledger.sync()
        checkpoint.write(folder.checkpoints, step, run, {"tally": progress.tally.state()})
        checkpoint.prune(folder.checkpoints, _KEPT)

    for tracker in run.trackers:
        tracker.open(folder.path, {"recipe": run.recipe, "seed": run.seed})
    everyone = Watchers([journal, *watchers, *run.trackers])
    # a thread has its own count of threads within, and starts with that of the machine
    thread = ThreadPoolExecutor(1, "trainer", initializer=torch.set_num_threads, initargs=(run.threads,))
    flow = Flow(run, policy, scorer, ledger, progress, everyone, save, heldout, thread)
    with Status(folder, flow), gentle_stop(progress):
        try:
            await (_restore(flow, folder, journal) if resume else _begin(flow))
            await train(flow)
        finally:
            # from here on within a bound
            progress.stages.enter(STOP, f"closes after {error!r}" if (error := sys.exception()) else "closes")
            for part in [run.engine, run.trainer, *run.worlds]:
                await _close(part)
            thread.shutdown(cancel_futures=True)
            await scorer.close()
            await judge.close()
            ledger.close()
            progress.stages.leave(STOP)
            for tracker in run.trackers:
                tracker.close()
    return _summarize(run, folder, progress)


def _uses_gpu(run: Run) -> bool:
    return any(str(getattr(part, "device", "cpu")).startswith("cuda") for part in (run.engine, run.trainer))


def _open(run: Run, model: Path) -> Policy:
    """Load the model into every part that holds one."""
    run.trainer.open(model, run.seed)
    run.engine.open(model)
    if run.values is not None:
        run.values.open(model, run.seed)
    run.channel.connect(run.trainer, [run.engine])
    return Policy.load(model, run.engine, run.sampling, run.context)


async def _close(part: object) -> None:
    """Let a part that holds more than memory let go of it."""
    if (close := getattr(part, "close", None)) is not None:
        await close()


async def _begin(flow: Flow) -> None:
    """Version 0: proven delivery, held-out accuracy before training, and a checkpoint to fall back on."""
    await flow.publish(0)
    flow.watcher.stepped(0, await flow.evaluate(), {"seconds": 0.0})
    flow.checkpoint(0)


async def _restore(flow: Flow, folder: RunFolder, journal: Journal) -> None:
    """Put everything where it was at the newest whole checkpoint and forget what came after."""
    if not checkpoint.listed(folder.checkpoints):
        flow.ledger.rollback(0)
        journal.forget_after(-1)
        return await _begin(flow)
    newest, problems = checkpoint.newest_whole(folder.checkpoints)
    for problem in problems:
        print(f"warning: {problem}; going back to {newest.name}", file=sys.stderr)
    step = int(newest.name.removeprefix("step-"))
    saved = checkpoint.read(newest, flow.run)
    flow.ledger.rollback(step)
    journal.forget_after(step)
    progress = flow.progress
    progress.step, progress.next_number = step, flow.ledger.next_number
    progress.tally.restore(saved["tally"])
    for group in flow.ledger.waiting():
        flow.run.buffer.add(group)
        progress.versions[group.number] = group.version
    for number in getattr(flow.run.buffer, "trained_before", ()):  # a buffer that draws again
        flow.run.buffer.add(flow.ledger.group(number))
    flow.resumed = flow.ledger.running()
    await flow.publish(step)


def _summarize(run: Run, folder: RunFolder, progress: Progress) -> dict[str, Any]:
    """summary.json: what the run was and what came of it."""
    rows = read_rows(folder.metrics)
    heldout = [row for row in rows if "heldout" in row]
    usage = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    last = heldout[-1] if heldout else {}
    summary = {
        "recipe": run.recipe,
        "seed": run.seed,
        "steps": progress.step,
        "is_complete": progress.step >= run.steps or is_spent(run, progress),
        "seconds": sum(row["seconds"] for row in read_rows(folder.timing)),
        "heldout_before": heldout[0]["heldout"] if heldout else None,
        "heldout_after": last.get("heldout"),
        "heldout_after_low": last.get("heldout_low"),
        "heldout_after_high": last.get("heldout_high"),
        "tokens_generated": progress.tally.tokens_generated,
        "tokens_trained": progress.tally.tokens_trained,
        "peak_rss_bytes": max(usage) * (1 if sys.platform == "darwin" else 1024),
        "selection_bias": _selection(folder),
        "folder": str(folder.path),
    }
    folder.summary.write_text(json.dumps(summary, indent=1) + "\n")
    return summary


def _selection(folder: RunFolder) -> dict[str, Any]:
    """How what was trained differs from what was offered; a large difference is said aloud."""
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        selection = selection_of(ledger)
    finally:
        ledger.close()
    for warning in selection.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return selection.plain()
