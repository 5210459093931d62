"""Garbage collection settings during training: objects that live as long as the run are frozen (`gc.freeze`)."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heap_at_rest() -> Iterator[None]:
    """What lives as long as a run is not looked through for garbage within its steps, which took 15 ms each time.

    Where somebody has put it to rest before, it is theirs to wake; where nothing looks for garbage, nothing is gained.
    """
    if not gc.isenabled() or gc.get_freeze_count():  # which counts one by one: 40 ms where tests have imported all
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
