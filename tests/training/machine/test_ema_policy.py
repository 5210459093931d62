from __future__ import annotations

from pathlib import Path

import pytest
import torch

from strop.errors import CheckpointError
from strop.training.machine.ema_policy import Average


def averaged(window: int, values: list[float]) -> tuple[float, Average]:
    average = Average(window)
    for version, value in enumerate(values):
        average.add(version, {"weight": torch.tensor([value])})
    return float(average.weights["weight"]), average


def test_hand_worked_averages() -> None:
    # decay 2 / 4: (0 / 4 + 1 / 2 + 2) / (1 / 4 + 1 / 2 + 1) = 10 / 7.
    assert averaged(2, [0.0, 1.0, 2.0])[0] == pytest.approx(10 / 7)
    assert averaged(0, [0.0, 1.0, 2.0])[0] == 2.0  # no memory


def test_the_mean_age_is_half_the_window() -> None:
    assert Average(4).decay == pytest.approx(2 / 3)
    value, _ = averaged(4, [float(version) for version in range(200)])
    assert 199 - value == pytest.approx(2.0, abs=1e-3)


def test_a_version_counts_once() -> None:
    value, average = averaged(2, [0.0, 1.0, 2.0])
    average.add(2, {"weight": torch.tensor([99.0])})
    assert float(average.weights["weight"]) == value


def test_too_few_alive_tokens_begin_it_anew() -> None:
    _, average = averaged(2, [0.0, 1.0])
    average.observe(0.95)
    average.add(2, {"weight": torch.tensor([2.0])})
    assert float(average.weights["weight"]) == pytest.approx(10 / 7)
    average.observe(0.85)
    average.add(3, {"weight": torch.tensor([5.0])})
    assert (float(average.weights["weight"]), average.mass) == (5.0, 1.0)


def test_it_resumes_to_the_same_bits(tmp_path: Path) -> None:
    _, average = averaged(4, [0.1, 0.7, 0.2])
    average.save(tmp_path)
    other = Average(4)
    other.resume(tmp_path)
    for each in (average, other):
        each.add(3, {"weight": torch.tensor([0.3])})
    assert torch.equal(average.weights["weight"], other.weights["weight"]) and average.mass == other.mass
    (tmp_path / "averaged.safetensors").write_bytes(b"cut")
    with pytest.raises(CheckpointError, match="averaged weights"):
        other.resume(tmp_path)
