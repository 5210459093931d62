"""Entry point of child processes: `python -m strop.workers.entry MODULE [SCRATCH]`, then `MODULE.serve(frames)`.

Before the module is imported, which may take long, the process already dies with its parent, dumps its stacks on
SIGUSR1 and has hidden its pipes: foreign code gets an empty stdin, and its output goes to stderr.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import sys

from strop.workers.frames import Frames
from strop.workers.keeper import fork_kept
from strop.workers.limits import is_confined, limit_memory


def main() -> None:
    """Serve until the parent is gone."""
    module, *scratch = sys.argv[1:]
    fork_kept(*scratch)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    if is_confined():
        limit_memory()
    frames = Frames(*_private_pipes())
    try:
        sys.path[:] = frames.take().head["path"]
        importlib.import_module(module).serve(frames)
    except EOFError:
        pass
    os._exit(0)  # at once: whatever is still running here is of no use to anybody


def _private_pipes() -> tuple[int, int]:
    """Move the conversation to descriptors that nobody here knows."""
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reading, writing


if __name__ == "__main__":
    main()
