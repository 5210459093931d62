"""Status file of a run, rewritten every second by a thread that outlives a hang of the event loop.

It also dumps all stacks on request (a request file, or SIGUSR1 where the interpreter itself hangs), reports on stderr
which part waits for which when nothing has moved for a while, and ends a run that does not stop when told to. Nothing
here reaches metrics or ledger: all of it depends on the wall clock.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from strop.capabilities import TellsStacks, generated, outermost
from strop.observe.live.explain_stall import lines, sentence
from strop.observe.live.stack_dump import stacks
from strop.observe.metrics.stage_tracker import Stage
from strop.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from strop.run_state import Flow

STOP = "run"  # whose stage says that the run must end now
_TICK = 0.5  # seconds between two looks at the request file; every other one writes
_END_SECONDS = 30.0  # after the second Ctrl-C, or for closing everything
_GROUPS = 32  # written at most
_INTERRUPTED, _FAILED = 130, 1
_TOLD: dict[str, Any] = {
    "pid": int,
    "written": int | float,
    "ended": str,
    "step": int,
    "steps": int,
    "loops": dict,
    "groups": list,
}


class Status:
    """Starts with `with`, ends with it and then records how the run ended."""

    def __init__(self, folder: RunFolder, flow: Flow) -> None:
        self._folder, self._flow = folder, flow
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="status", daemon=True)
        self._generated: Any = None
        self._generated_at = time.monotonic()
        self._warned = 0.0  # seconds of standing still at which it was said last
        self._complaint = ""  # the last one
        self._signal_file: TextIO | None = None

    def __enter__(self) -> Status:
        for path in (self._folder.request, self._folder.stacks):
            path.unlink(missing_ok=True)
        self._signal_file = self._folder.stacks.open("a")
        faulthandler.register(signal.SIGUSR1, self._signal_file, all_threads=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        self._safely(self._write, "ended" if error is None else f"{type(error).__name__}: {error}".removesuffix(": "))
        faulthandler.unregister(signal.SIGUSR1)
        assert self._signal_file is not None
        self._signal_file.close()

    def _watch(self) -> None:
        ticks = 0
        while not self._over.wait(_TICK):
            ticks += 1
            if self._folder.request.is_file():
                self._safely(self._dump)
            if ticks % 2:
                self._safely(self._write)
                self._safely(self._tell_of_stall)
            self._end_what_does_not_end()

    def _safely(self, work: Callable[..., None], *arguments: Any) -> None:
        """A part that cannot be asked must end neither the run nor the thread that ends what hangs."""
        try:
            work(*arguments)
        except Exception as error:
            if (told := f"{type(error).__name__}: {error}") != self._complaint:
                print(f"warning: {self._folder.path} has no status: {told}", file=sys.stderr)
            self._complaint = told

    def _write(self, ended: str = "") -> None:
        """A full disk must not end the thread: it is for such moments."""
        building = self._folder.status.with_suffix(".building")
        with suppress(OSError):
            building.write_text(json.dumps(self.state(ended), indent=1) + "\n")
            building.replace(self._folder.status)

    def state(self, ended: str = "") -> dict[str, Any]:
        """Everything that is known, as plain data."""
        flow, now = self._flow, time.monotonic()
        stages = flow.progress.stages
        groups = [_group(number, stage, now) for number, stage in stages.of("group").items()]
        for rollout, stage in stages.of("rollout").items():
            for group in groups:
                if rollout.startswith(f"{group['number']}/"):
                    group["in_env"][rollout] = now - stage.since
        loops = {who: at for who, at in stages.all().items() if " " not in who}
        return {
            "pid": os.getpid(),
            "written": time.time(),
            "ended": ended,
            "step": flow.progress.step,
            "steps": flow.run.steps,
            "groups_per_step": flow.run.groups_per_step,
            "loops": {who: {"what": at.what, "seconds": now - at.since} for who, at in loops.items()},
            "waiting": len(flow.run.buffer),
            "num_running": len(groups),
            "groups": groups[:_GROUPS],
            "engine": _known_of(flow.run.engine),
            "still_seconds": now - self._moved(now),
        }

    def _moved(self, now: float) -> float:
        """When anything last changed; tokens count, where the engine says how many there are."""
        count = generated(self._flow.run.engine)
        if count != self._generated:
            self._generated, self._generated_at = count, now
        return max(self._flow.progress.stages.moved, self._generated_at)

    def _tell_of_stall(self) -> None:
        """At the limit, at twice the limit, and so on."""
        limit, state = self._flow.run.stall_seconds, self.state()
        still = state["still_seconds"]
        if limit <= 0 or still < limit:
            self._warned = 0.0
        elif still >= 2 * self._warned:
            self._warned = still
            told = "\n  ".join([f"nothing has moved for {still:.0f} s: {sentence(state)}", *lines(state)])
            print(f"{told}\n  more: strop why {self._folder.path}", file=sys.stderr)

    def _dump(self) -> None:
        """Written in place, because the handler of SIGUSR1 holds this very file."""
        with suppress(OSError):
            self._folder.stacks.write_text(stacks(self._loop) + self._elsewhere())
            self._folder.request.unlink(missing_ok=True)

    def _elsewhere(self) -> str:
        """Stacks of the processes of engine and trainer, where they have any; a process may end while it is asked."""
        told, run = "", self._flow.run
        for name, part in (("engine", run.engine), ("trainer", run.trainer)):
            for _, told_by in outermost(part, TellsStacks):
                with suppress(OSError, ValueError):
                    told += f"\nprocesses of the {name}\n{told_by.stacks()}"
        return told

    def _end_what_does_not_end(self) -> None:
        stop = self._flow.progress.stages.all().get(STOP)
        if stop is None or time.monotonic() - stop.since < _END_SECONDS:
            return
        self._safely(self._dump)
        how = f"did not stop within {_END_SECONDS:g} s ({stop.what})"
        self._safely(self._write, how)
        print(f"it {how} and is ended; see {self._folder.stacks}", file=sys.stderr)
        os._exit(
            _INTERRUPTED if self._flow.progress.is_stopping else _FAILED
        )  # a thread that hangs cannot be ended otherwise; the last checkpoint is whole


def _group(number: str, stage: Stage, now: float) -> dict[str, Any]:
    in_env: dict[str, float] = {}
    return {"number": int(number), "what": stage.what, "seconds": now - stage.since, "in_env": in_env}


def _known_of(engine: Any) -> dict[str, Any]:
    """What an engine says of itself, in words."""
    return (
        {"tokens sampled, held-out completions among them:": count} if (count := generated(engine)) is not None else {}
    )


def read_status(path: Path) -> dict[str, Any]:
    """A run's last status, or nothing where it never wrote one."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and all(isinstance(found.get(k), kind) for k, kind in _TOLD.items()) else {}
