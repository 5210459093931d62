"""Whoever put the heap to rest wakes it: a run does both, and leaves alone what others did."""

from __future__ import annotations

import gc

from strop.start.heap import heap_at_rest


def test_the_heap_rests_while_a_run_lasts() -> None:
    was_frozen = gc.get_freeze_count()
    gc.unfreeze()
    try:
        with heap_at_rest():
            assert gc.get_freeze_count() > 1000
        assert gc.get_freeze_count() == 0
        gc.freeze()
        with heap_at_rest():
            pass
        assert gc.get_freeze_count() > 1000, "it was at rest before"
    finally:
        if not was_frozen:
            gc.unfreeze()
