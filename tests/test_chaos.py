"""A short chaos campaign; the whole one is `make chaos`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.chaos import campaign


@pytest.mark.long
@pytest.mark.slow  # more than a minute; kills of runs and engines are seen in tests/start and tests/placement too
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_few_kills_over_local_processes(tmp_path: Path) -> None:
    done = campaign(kills=4, name="process", seed=1, root=tmp_path, per_run=4)
    assert sum(done.kills.values()) == 4
