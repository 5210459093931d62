"""Kernels that must add in one order, compiled for Hopper: the interpreter has an order of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.triton_device import IS_INTERPRETED, triton_device

pytestmark = pytest.mark.gpu
triton_device()


@pytest.mark.skipif(not IS_INTERPRETED, reason="a GPU compares bits")
def test_a_norm_in_eight_bits_adds_as_the_norm_does() -> None:
    episode = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "tests.gpu.compiled_norms"]
    root = Path(__file__).parents[2]
    said = subprocess.run(command, capture_output=True, text=True, env=episode, cwd=root, check=True).stdout
    for pair in map(json.loads, said.splitlines()):
        assert set(pair) == {"norm", "norm_eight_bits"} and pair["norm"] == pair["norm_eight_bits"], pair
    assert len(said.splitlines()) == 20
