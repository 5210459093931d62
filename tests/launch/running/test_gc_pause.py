"""Whoever put the heap to rest wakes it (strop.launch.running.gc_pause): a run does both, and leaves alone what others
did.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from strop.launch.running.gc_pause import heap_at_rest


@pytest.fixture
def awake() -> Iterator[None]:
    """Tests have their heap at rest and look for garbage between them: here all is as Python begins."""
    gc.unfreeze()
    gc.enable()
    yield
    gc.freeze()
    gc.disable()


def test_what_was_awake_is_awake_again(awake: None) -> None:
    with heap_at_rest():
        assert gc.get_freeze_count() > 1000
    assert gc.get_freeze_count() == 0


def test_who_put_it_to_rest_wakes_it(awake: None) -> None:
    gc.freeze()
    with heap_at_rest():
        pass
    assert gc.get_freeze_count() > 1000, "it was at rest before"


def test_where_nobody_looks_for_garbage_nothing_is_done(awake: None) -> None:
    gc.disable()
    with heap_at_rest():
        assert gc.get_freeze_count() == 0
