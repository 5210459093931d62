"""Fixtures of the tests of recipes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strop.run_state import Flow


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """Flow of a run whose engine is scripted."""
    from tests.control.asking import a_flow

    with a_flow(tmp_path_factory.mktemp("flow")) as flow:
        yield flow
