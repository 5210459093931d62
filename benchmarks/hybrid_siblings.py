"""Training pass of a small Qwen3.5 over 8 siblings of 384 + 64 tokens, with their prompt shared and by themselves.

python benchmarks/hybrid_siblings.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from strop.models.layers.attention import Packed
from strop.models.model import hidden_states, load_model
from strop.training.machine.packed_sequences import Sequences
from tests.models.state_models import save_state_model

_SIZES = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 32, "num_attention_heads": 8}
_SIZES |= {"linear_key_head_dim": 32, "linear_value_head_dim": 32, "linear_num_key_heads": 4}
_SIZES |= {"linear_num_value_heads": 8}


def best(run: Callable[[], torch.Tensor], times: int = 5) -> float:
    """Seconds of the quickest pass forward and back."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        torch.autograd.backward(run().square().mean())
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    model, rng = (
        load_model(save_state_model(Path(tempfile.mkdtemp()), "qwen3_5_text", **_SIZES)),
        np.random.default_rng(0),
    )
    prompt = rng.integers(4, 40, 384)
    tokens = torch.from_numpy(np.concatenate([np.append(prompt, rng.integers(4, 40, 65)) for _ in range(8)]))
    positions = torch.arange(449).repeat(8)
    shared = Sequences(tokens, positions, [449] * 8, "cpu")
    kept = torch.arange(len(tokens)).view(8, 449)[:, :-1].reshape(-1)
    together = best(lambda: shared.hidden_states(model))
    apart = best(lambda: hidden_states(model, tokens[kept], positions[kept], Packed([448] * 8)))
    print(f"shared {together:.2f} s, by themselves {apart:.2f} s: {together / apart:.2f}")


if __name__ == "__main__":
    main()
