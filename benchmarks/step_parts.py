"""Where the time of a run goes, measured from within: every second belongs to exactly one part.

Functions of the package are wrapped for as long as a run lasts. A part's time leaves out that of parts it calls; a
coroutine's is that of its turns, and while it waits others' time counts. What nobody claims is the event loop, or a
wait for the device.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import strop.evaluation
import strop.generate.rollout
import strop.launch.running.launch
import strop.pipeline
import strop.training.pack
from strop.filter.scoring import Scorer
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.templates.chat_template import Template
from strop.observe.metrics.step_metrics import Tally
from strop.observe.run_files.jsonl_journals import Journal
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.training.verify_logprobs import rescored

EVALUATION, START = "evaluation", "start"
_TRAINING = ("step", "accumulate", "finish", "annotate", "policy_statistic")
_LEDGER = ("admitted", "finished", "trained", "published", "sync")


@dataclass
class Clock:
    """Seconds and calls by part; within a phase of its own (evaluation), everything is booked there."""

    now: Callable[[], float] = time.perf_counter
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: Counter[str] = field(default_factory=Counter)
    phase: str = ""
    _mine: threading.local = field(default_factory=threading.local)

    def wrapped(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(work):

            @functools.wraps(work)
            async def turns(*arguments: Any, **named: Any) -> Any:
                self.calls[self.phase or part] += 1
                return await _Driven(self, part, work(*arguments, **named))

            return turns

        @functools.wraps(work)
        def whole(*arguments: Any, **named: Any) -> Any:
            self.calls[self.phase or part] += 1
            with self.on(part):
                return work(*arguments, **named)

        return whole

    @contextmanager
    def on(self, part: str) -> Iterator[None]:
        """Book what happens within to a part, and pause whoever called it."""
        stack: list[list[float]] = self._mine.__dict__.setdefault("stack", [])
        began = self.now()
        stack.append([0.0])  # seconds of parts within
        try:
            yield
        finally:
            took = self.now() - began
            (inner,) = stack.pop()
            self.seconds[self.phase or part] += took - inner
            if stack:
                stack[-1][0] += took

    @contextmanager
    def within(self, phase: str) -> Iterator[None]:
        """Everything meanwhile, waiting included, belongs to this phase."""
        before, self.phase = self.phase, phase
        booked, began = self.seconds[phase], self.now()
        try:
            yield
        finally:
            self.phase = before
            self.seconds[phase] = booked + self.now() - began


class _Driven:
    """A coroutine whose turns are timed."""

    def __init__(self, clock: Clock, part: str, work: Coroutine[Any, Any, Any]) -> None:
        self._clock, self._part, self._work = clock, part, work

    def __await__(self) -> Generator[Any, Any, Any]:
        act: Callable[[], Any] = lambda: self._work.send(None)  # noqa: E731
        while True:
            try:
                with self._clock.on(self._part):
                    wish = act()
            except StopIteration as end:
                return end.value
            try:
                value = yield wish
                act = functools.partial(self._work.send, value)
            except BaseException as error:
                act = functools.partial(self._work.throw, error)


@contextmanager
def watched(run: Run, clock: Clock) -> Iterator[None]:
    """Wrap what a run does; everything is put back afterwards."""
    undo: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, new: Any) -> None:
        undo.append((owner, name, vars(owner)[name]))
        setattr(owner, name, new)

    def everywhere(part: str, function: Callable[..., Any], new: Callable[..., Any] | None = None) -> None:
        """A function under every name by which the package's modules know it."""
        wrapped = new or clock.wrapped(part, function)
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "strop":
                for key in [key for key, value in vars(module).items() if value is function]:
                    put(module, key, wrapped)

    def methods(part: str, owner: type, *names: str) -> None:
        for name in names:
            if name in vars(owner):
                put(owner, name, clock.wrapped(part, vars(owner)[name]))

    evaluate = strop.evaluation.evaluate

    async def evaluated(*arguments: Any, **named: Any) -> Any:
        with clock.within(EVALUATION):
            return await evaluate(*arguments, **named)

    everywhere(EVALUATION, evaluate, evaluated)
    everywhere("rollouts (host)", strop.generate.rollout.play)
    everywhere("packing", strop.training.pack.pack)
    everywhere("rescoring", rescored)
    methods("generation", TorchEngine, "_run")
    methods("generation", PagedEngine, "_run")
    methods("template and tokenizer", Template, "opening", "between", "text")
    methods("scoring", Scorer, "__call__")
    methods("ledger", Ledger, *_LEDGER)
    methods("training", type(run.trainer), *_TRAINING)
    methods("credit", type(run.advantage), "__call__")
    if run.values is not None:
        methods("values", type(run.values), "predict", "learn")
    methods("tasks", type(run.sampler), "next")
    methods("figures", Tally, "finished", "trained", "timing")
    everywhere("flow of groups", strop.pipeline.make_group)
    everywhere("flow of steps", strop.pipeline.learn_from_groups)
    methods("publish and proof", type(run.channel), "publish")
    methods("journal", Journal, "stepped")
    put(checkpoint, "write", clock.wrapped("checkpoint", checkpoint.write))
    put(checkpoint, "prune", clock.wrapped("checkpoint", checkpoint.prune))
    try:
        yield
    finally:
        for owner, name, old in reversed(undo):
            setattr(owner, name, old)
