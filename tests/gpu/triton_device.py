"""Where kernels can be tried: on a GPU, or in Triton's interpreter."""

from __future__ import annotations

import os

import pytest
import torch

IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def triton_device() -> str:
    """Skips the module that asks where there is none."""
    pytest.importorskip("triton", reason="no Triton here")
    if not (torch.cuda.is_available() or IS_INTERPRETED):
        pytest.skip("no GPU here", allow_module_level=True)
    return "cpu" if IS_INTERPRETED else "cuda"
