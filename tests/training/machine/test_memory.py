"""Memory is planned before the first step: layers are computed again where that helps, and the rest is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from strop.errors import ConfigurationError
from strop.models.optimizers.low_memory_adamw import FLOAT32, HOLDINGS
from strop.models.torch_setup import gpu_memory
from strop.training.losses.likelihood import Likelihood
from strop.training.machine.memory import bytes_needed, settle, ways
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.trainers.torch import TorchTrainer
from tests.training.tiny import random_groups, save_gpt2, save_llama

GIB, WHOLE = 2**30, HOLDINGS[FLOAT32]


def smollm2() -> Any:
    """The shape alone, without memory."""
    with torch.device("meta"):
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=49152,
                hidden_size=576,
                intermediate_size=1536,
                num_hidden_layers=30,
                num_attention_heads=9,
                num_key_value_heads=3,
                tie_word_embeddings=True,
            )
        )


def test_the_plan_of_a_known_model() -> None:
    """SmolLM2-135M, 64 x 512 tokens at once, took 15.2 GiB on an H200, its weights of 0.5 included."""
    model = smollm2()
    kept = bytes_needed(model, WHOLE, 4096, True, False, 32768)
    assert kept["moments"] == 8 * 134_515_008
    assert 14 < sum(kept.values()) / GIB < 17
    again = bytes_needed(model, WHOLE, 4096, True, True, 32768)
    assert sum(again.values()) < 0.55 * sum(kept.values())
    assert bytes_needed(model.requires_grad_(False), WHOLE, 1, True, False, 1)["moments"] == 0


def test_weights_beside_adapters_need_no_gradient_and_no_copy() -> None:
    frozen = smollm2().to(torch.bfloat16).requires_grad_(False)
    needed = bytes_needed(frozen, WHOLE, 1024, True, True, 8192)
    assert needed["gradients"] == needed["moments"] == needed["rounded weights"] == 0
    assert needed["logits"] == 1024 * 49152 * 2  # no gradient of the output layer
    # of each token a float32 stream for each layer, what one layer keeps, and what it works with
    assert needed["activations"] > 8192 * 30 * 576 * 4


def of_tokens(is_checkpointed: bool, max_tokens: int) -> dict[str, int]:
    """Activations of 10 GiB for 16,384 tokens, or 2 where layers are computed again."""
    return {"activations": (2 if is_checkpointed else 10) * GIB * max_tokens // 16384, "moments": GIB}


def test_layers_are_computed_again_only_where_memory_asks() -> None:
    assert settle(20 * GIB, of_tokens, "auto", 16384) == (False, 16384)
    assert settle(5 * GIB, of_tokens, "auto", 16384) == (True, 16384)
    assert settle(20 * GIB, of_tokens, "on", 16384) == (True, 16384)
    with pytest.raises(ConfigurationError, match=r"needs 11\.0 GiB .* 4\.5 can be used: it takes checkpointing=\"on\""):
        settle(5 * GIB, of_tokens, "off", 16384)
    with pytest.raises(ConfigurationError, match=r"needs 3\.0 GiB .*moments 1\.0.* at most 0\.40 times"):
        settle(2 * GIB, of_tokens, "auto", 16384)
    with pytest.raises(ConfigurationError, match="a smaller model, or lora"):
        settle(GIB, of_tokens, "auto", 16384)


def test_micro_batches_are_halved_as_long_as_they_hold_the_longest_context() -> None:
    assert settle(7 * GIB, of_tokens, "auto", 16384, longest=2048) == (False, 8192)
    assert settle(2 * GIB, of_tokens, "auto", 16384, longest=2048) == (True, 4096)
    with pytest.raises(ConfigurationError, match=r"needs 2\.0 GiB"):
        settle(2 * GIB, of_tokens, "auto", 16384, longest=5000)
    assert ways("auto", 32768, 2048) == [
        (False, 32768), (False, 16384), (False, 8192),
        (True, 32768), (True, 16384), (True, 8192), (True, 4096), (True, 2048),
    ]  # fmt: skip
    assert ways("on", 4096, 3000) == [(True, 4096)]
    assert ways("off", 4096, 0) == [(False, 4096)]  # nobody said how long a context is


@pytest.mark.parametrize("save", [save_llama, save_gpt2])
def test_computing_layers_again_on_the_slow_path_changes_no_bit(save: Any, tmp_path: Path) -> None:
    folder, runs = save(tmp_path), []
    if save is save_gpt2:  # which drops out by default
        with pytest.raises(ConfigurationError, match="dropout"):
            _trained(folder, "on")
        return
    runs = [_trained(folder, how) for how in ("off", "on")]
    assert runs[0] == runs[1]


def _trained(folder: Path, checkpointing: str) -> list[float]:
    trainer = TorchTrainer(fused="off", checkpointing=checkpointing)
    trainer.open(folder, 0)
    batches = pack(random_groups(), TokenMean(), 0, 100)
    return [trainer.step(batches, Objective((Likelihood(),)))["grad_norm"] for _ in range(2)]


@pytest.mark.parametrize(
    ("share", "free", "reserved", "expected"),
    [
        (1.0, 60, 10, (60, 100)),  # a process alone: what is free, of all there is
        (0.2, 60, 5, (15, 20)),  # a share of a fifth, of which a quarter is taken
        (0.2, 3, 5, (3, 20)),  # others took more than theirs
        (0.2, 60, 25, (0, 20)),
    ],
)
def test_a_process_has_no_more_than_its_share(
    share: float, free: int, reserved: int, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch answers for a number of a device; `cuda` alone means the current one."""
    asked: list[object] = []

    def fraction(index: int) -> float:
        asked.append(index)
        return share

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (free, 100))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda index: reserved)
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", fraction)
    assert gpu_memory("cuda") == gpu_memory("cuda:1") == expected
    assert asked == [3, 1]
