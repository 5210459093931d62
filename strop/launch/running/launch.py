"""Execution of a `Run`: opens its parts, starts or resumes, trains, and writes the results to disk."""

from __future__ import annotations

import asyncio
import gc
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from strop.capabilities import Closes, Keeps, Loads, Meets, Settles, inside, outermost, uses_gpu
from strop.environments.data.heldout_split import HeldOutSide
from strop.errors import CheckpointError, ConfigurationError, DataError, ModelError, StropError
from strop.evaluation import evaluate, held_out, heldout_metrics, ids_of
from strop.filter.overruns import Overruns
from strop.filter.scoring import Scorer
from strop.generate.llm_clients.named import taken
from strop.generate.policy import Policy
from strop.launch.checks.gpu_memory_plan import expect
from strop.launch.checks.preflight_all import fit, rehearse
from strop.launch.running.agreement import check_agreement
from strop.launch.running.gc_pause import heap_at_rest
from strop.launch.running.provenance_check import check_origin, differences, write_origin, write_recipe
from strop.launch.running.saving import Saving
from strop.launch.running.stopping import gentle_stop
from strop.models import torch_setup
from strop.models.loading.model_names import model_folder
from strop.observe.live.status_file import STOP, Status
from strop.observe.metrics.no_signal_warning import Contrast
from strop.observe.report.write_report import write_report
from strop.observe.run_files.best_checkpoint import BestCheckpoint
from strop.observe.run_files.jsonl_journals import HeldOutJournal, Journal
from strop.observe.run_files.run_info import read_summary
from strop.observe.run_files.summary import summarize, warmup_harm
from strop.pipeline import train
from strop.run import Run
from strop.run_state import Flow, Progress, Watcher, is_spent
from strop.storage import checkpoint
from strop.storage.ledger.file_presence import Presence
from strop.storage.ledger.ledger import Ledger
from strop.storage.llm_answers import AnswerCache
from strop.storage.picture_store import PictureStore
from strop.storage.run_folder import WARMUP, RunFolder, fresh_folder
from strop.storage.run_source import from_source, to_source
from strop.types import Metrics


@runtime_checkable
class Begins(Protocol):
    """Watcher that prints a line for each phase, once its parts are open."""

    def begins(self, title: str, steps: int, max_tokens: int = 0) -> None: ...


@dataclass
class Watchers:
    """Several watchers as one."""

    each: Sequence[Watcher]

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        for watcher in self.each:
            watcher.stepped(step, metrics, timing)


def launch(run: Run, root: Path = Path("runs"), name: str = "", watchers: Sequence[Watcher] = ()) -> dict[str, Any]:
    """Start a new run and train it to the end; returns its summary."""
    left_out, warnings = rehearse(run)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    folder = fresh_folder(root, name or f"{run.recipe}-seed{run.seed}")
    with _owned(folder), _gone_if_refused(folder):
        recipe = to_source(run, f"strop run {folder.path.name}: {run.recipe}, seed {run.seed}.")
        write_origin(folder, run, recipe, left_out)
        write_recipe(folder.recipe, recipe)  # last: with it, there is a run to go on with
        summary = _conduct(run, folder, watchers, resume=False)
    write_report(folder)
    return summary


def relaunch(
    path: Path, watchers: Sequence[Watcher] = (), changed_anyway: bool = False, trust: bool = False
) -> dict[str, Any]:
    """Go on with a run from its newest whole checkpoint; only `changed_anyway` with other files than it began with.

    Its recipe.py is code: one that this user did not write is executed only with `trust`.
    """
    folder = RunFolder(path)
    folder.require_recipe()
    with _owned(folder):
        check_origin(folder, changed_anyway)
        run: Run = from_source(folder.recipe, trust)
        fit(run)
        if found := differences(folder, run):
            print(f"warning: bits may differ from here on: {'; '.join(found)}", file=sys.stderr)
        check_agreement(folder, changed_anyway)
        summary = _conduct(run, folder, watchers, True, changed_anyway, trust)
    write_report(folder)
    return summary


def _warm_up(folder: RunFolder, watchers: Sequence[Watcher], changed_anyway: bool, trust: bool) -> dict[str, Any]:
    """Make the model that a run begins with, in a folder within its own; where it is made already, nothing is done."""
    inner = RunFolder(folder.path / WARMUP)
    if inner.summary.is_file() and (summary := read_summary(inner))["is_complete"]:
        return summary
    if inner.recipe.is_file():
        return relaunch(inner.path, watchers, changed_anyway, trust)
    # from the file, so that nothing keeps its engine and trainer in memory once it is over
    summary = launch(from_source(folder.recipe, trust).warmup, folder.path, WARMUP, watchers)
    gc.collect()
    torch.cuda.empty_cache()
    return summary


def warmed(run: Run, folder: RunFolder) -> Run:
    """A run as it goes on after its warm-up: with the model that it made."""
    if run.warmup is None:
        return run
    model, _ = checkpoint.newest_whole(folder.path / WARMUP / "checkpoints")
    return replace(run, model=str(model), warmup=None)


@contextmanager
def _gone_if_refused(folder: RunFolder) -> Iterator[None]:
    """What is refused only once the model is loaded leaves no folder either."""
    try:
        yield
    except (ConfigurationError, ModelError, DataError):
        if not any(folder.path.rglob("checkpoints/step-*")):
            shutil.rmtree(folder.path)
        raise


@contextmanager
def _owned(folder: RunFolder) -> Iterator[None]:
    folder.acquire()
    try:
        yield
    finally:
        folder.release()


def _conduct(
    run: Run,
    folder: RunFolder,
    watchers: Sequence[Watcher],
    resume: bool,
    changed_anyway: bool = False,
    trust: bool = False,
) -> dict[str, Any]:
    if run.warmup is not None:
        before = _warm_up(folder, watchers, changed_anyway, trust)
        if lowered := warmup_harm(before):
            print(f"warning: {lowered}", file=sys.stderr)
        if not before["is_complete"]:
            return before | {"folder": str(folder.path)}
        run = warmed(run, folder)
    # the promise of the same bits is for CPUs; on a GPU it would cost much and hold between equal machines at best
    torch_setup.set_up(run.threads, is_deterministic=not uses_gpu((run.engine, run.trainer)))
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
    policy = _open(run, model, folder)
    for watcher in watchers:
        if isinstance(watcher, Begins):
            watcher.begins(run.recipe, run.steps, run.max_generated_tokens)
    ledger, journal, progress = Ledger(folder.ledger), Journal(folder.metrics, folder.timing), Progress()
    scorer, judge = _scorers(run, folder, policy)
    measured = run.evaluation.measured(run.envs)
    asked = held_out((*measured, *run.evaluation.unseen), run.evaluation, policy)

    async def heldout() -> Metrics:
        if not any(tasks for _, tasks in asked):
            return {}  # nothing is measured, and no metric says so
        scores = await evaluate(asked, run.evaluation.of(run.agent), policy, judge, run.seed, run.env_seconds)
        run.engine.forget()  # or kept prefixes would change the last bits of what a resumed run generates
        by_task.note([score.plain(place >= len(measured)) for place, score in enumerate(scores)])
        return heldout_metrics(scores[: len(measured)], scores[len(measured) :])

    by_task, save = HeldOutJournal(folder), Saving(run, folder, ledger, progress)
    for tracker in run.trackers:
        tracker.open(folder.path, {"recipe": run.recipe, "seed": run.seed})
    told: list[Watcher] = [Presence(folder.ledger, ledger), journal, by_task, *watchers, *run.trackers]
    everyone = Watchers([*told, Contrast(run, ledger), save.best])
    # a thread has its own count of threads within, and starts with that of the machine
    thread = ThreadPoolExecutor(1, "trainer", initializer=torch.set_num_threads, initargs=(run.threads,))
    flow = Flow(run, policy, scorer, ledger, progress, everyone, save, heldout, thread)
    flow.heldout = HeldOutSide((*run.envs, *run.evaluation.unseen), ids_of(asked))
    with Status(folder, flow), gentle_stop(progress), heap_at_rest():
        try:
            await (_restore(flow, folder, [journal, by_task], save.best) if resume else _begin(flow))
            await train(flow)
        finally:
            # from here on within a bound
            progress.stages.enter(STOP, f"closes after {error!r}" if (error := sys.exception()) else "closes")
            for each in (*(part for _, part in outermost(run, Closes)), scorer, judge):
                await each.close()
            thread.shutdown(cancel_futures=True)
            ledger.close()
            progress.stages.leave(STOP)
            for tracker in run.trackers:
                tracker.end()
    is_complete = progress.step >= run.steps or is_spent(run, progress)
    return summarize(run, folder, progress.step, is_complete)


def _scorers(run: Run, folder: RunFolder, policy: Policy) -> tuple[Scorer, Scorer]:
    """One for training, one for held-out tasks; a resumed run is told what exhausted them before."""
    scorer = Scorer(run.rewards, run.reward_seconds, run.reward_workers)
    judge = Scorer(run.evaluation.rewards, run.reward_seconds, run.reward_workers)
    scorer.places = judge.places = policy.template.places
    book = AnswerCache(folder.path / "overruns.db")
    scorer.overruns, judge.overruns = Overruns(book), Overruns(book, "heldout")
    return scorer, judge


def _open(run: Run, model: Path, folder: RunFolder) -> Policy:
    """Load the model into every part that holds one; whoever keeps a file is told where."""
    for keeper in inside(run, Keeps):
        keeper.keep_in(folder.path)
    expect(run)
    run.trainer.open(model, run.seed)
    run.channel.connect(run.trainer, [run.engine])  # first: an engine may read the trainer's weights in place
    run.engine.open(model)
    open_learners(run, model)
    for _, part in outermost(run.trainer, Settles):
        part.settle()
    policy = Policy.load(model, run.engine, run.sampling, run.context, PictureStore(folder.path))
    for each in inside(run, Meets):
        each.meet(policy)
    return policy


def open_learners(run: Run, model: Path) -> None:
    """Open the value model and load every network held by control parts, strategy, agent or advantage."""
    if run.values is not None:
        run.values.open(model, run.seed)
    control = (run.estimator, run.sampler, run.task_generator, run.budget)
    for _, part in outermost((*control, run.strategy, run.agent, run.advantage), Loads):
        part.load_model(model, run.seed)


async def _begin(flow: Flow) -> None:
    """Version 0: proven delivery, held-out accuracy before training, and a checkpoint to fall back on."""
    await flow.publish(0)
    flow.watcher.stepped(0, await flow.evaluate() | taken(flow.named_parts), {"seconds": 0.0})
    flow.checkpoint(0)


async def _restore(
    flow: Flow, folder: RunFolder, journals: list[Journal | HeldOutJournal], best: BestCheckpoint
) -> None:
    """Put everything where it was at the newest whole checkpoint and forget what came after."""
    if not checkpoint.listed(folder.checkpoints):
        flow.ledger.rollback(0)
        for journal in journals:
            journal.forget_after(-1)
        return await _begin(flow)
    newest, problems = checkpoint.newest_whole(folder.checkpoints)
    for problem in problems:
        print(f"warning: {problem}; going back to {newest.name}", file=sys.stderr)
    step = int(newest.name.removeprefix("step-"))
    flow.ledger.rollback(step)
    saved = checkpoint.read(newest, flow.run, flow.ledger.group)
    for journal in journals:
        journal.forget_after(step)
    best.restore()
    progress = flow.progress
    progress.step, progress.next_number = step, flow.ledger.next_number
    progress.tally.restore(saved["tally"])
    progress.versions.update(flow.ledger.waiting())
    flow.resumed = flow.ledger.running()
    await flow.publish(step)
