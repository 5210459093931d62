"""Prints how the numbers lie that norms add, compiled for Hopper: of the norm itself, and of the one in eight bits."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from kernel_resources import compiling, some

from strop.kernels.triton import norm
from strop.kernels.triton.norm_eight_bits import encode_norm

SIZES, COUNTS = (128, 512, 576, 2048, 3584), (16, 2048)


def added(kernel: Any) -> str:
    """The shape that is summed along, and which thread has which of its numbers."""
    text: str = kernel.asm["ttgir"]
    found = re.search(r"}\) : \(tensor<(\w+), (#\w+)>\)", text)
    assert found, text
    layout = re.search(rf"^{found[2]} = (.*)$", text, re.MULTILINE)
    assert layout, text
    return f"{found[1]} {layout[1]}"


def main() -> None:
    for size in SIZES:
        for count in COUNTS:
            for delta in (None, some(count, size)):
                given = (some(count, size, dtype=torch.float32), delta, some(size), 1e-6, torch.bfloat16)
                with compiling() as kernels:
                    norm.forward(*given, is_in_place=True)
                    encode_norm(*given)
                print(json.dumps({name.split(".")[0]: added(kernel) for name, kernel in kernels.items()}))


if __name__ == "__main__":
    main()
