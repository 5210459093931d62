"""Placement of a run's parts: inline, in local processes, or in a Ray cluster.

SRL's separation of acting, inference and training, connected by streams that may be a call, shared memory or a network,
each kind in any number. Its buffer with sample reuse and its ring of environments are not here.
Papers: srl
"""

from __future__ import annotations

import copy
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from strop.errors import ConfigurationError, nearest
from strop.generate.engines.wrappers.load_balanced import Several
from strop.placement.process_engine import LocalProcess
from strop.weights.channels.memory import Memory
from strop.weights.channels.shared_memory import SharedMemory

if TYPE_CHECKING:
    from strop.run import Run

PLACES = ("inline", "process", "ray")


def place(run: Run, where: str, engines: int = 1) -> Run:
    """The same run with its engine elsewhere; `engines` copies of it share the work."""
    if where not in PLACES:
        raise ConfigurationError(f"there is no place {where!r}: {nearest(where, PLACES)}")
    if engines < 1:
        raise ConfigurationError(f"need engines >= 1, got {engines}")
    if where == "ray":
        from strop.placement.ray_engine import place as place_on_ray

        return place_on_ray(run, engines)
    if where == "process":
        return _in_processes(run, engines)
    if engines > 1:
        raise ConfigurationError(f"{engines} engines in one process only share its time: use --place process")
    return run


def _in_processes(run: Run, engines: int) -> Run:
    """One thread per engine; what the trainer has is the run's own `threads`."""
    if isinstance(run.engine, LocalProcess | Several):
        raise ConfigurationError(f"the engine of this run is placed already: {run.engine}")
    _warn_of_too_many_threads(run.threads, engines)
    # without lag nothing runs meanwhile, so waiting for each other costs little and gives the bits of an inline run
    in_step = run.admission.lag == 0
    hosts = tuple(LocalProcess(copy.deepcopy(run.engine), in_step=in_step) for _ in range(engines))
    channel = SharedMemory() if isinstance(run.channel, Memory) else run.channel
    return replace(run, engine=hosts[0] if engines == 1 else Several(hosts), channel=channel)


def _warn_of_too_many_threads(trainer: int, engines: int) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if trainer + engines > cores + 1:  # one too many fills the time in which an engine waits
        print(
            f"warning: {trainer} threads of the trainer and {engines} engines with one each are more than the {cores} "
            f"cores here and wait for each other; at most {max(1, cores - trainer)} engines have one to themselves",
            file=sys.stderr,
        )
