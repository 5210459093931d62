"""Merged models: their ends are the parents, their middle lies between, and what does not fit is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from strop.errors import ConfigurationError, ModelError
from strop.models.model import load_model
from strop.recipes.distill.synergy_dilemma import merge
from tests.tiny_models import save_pocket_like


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_the_ends_are_the_parents_and_a_third_lies_between(tmp_path: Path) -> None:
    first, second = save_pocket_like(tmp_path / "first"), save_pocket_like(tmp_path / "second", seed=1)
    for share, parent in ((0.0, first), (1.0, second)):
        torch.testing.assert_close(
            weights(merge(first, second, share, tmp_path / f"{share}")), weights(parent), rtol=0, atol=0
        )
    third = weights(merge(first, second, 1 / 3, tmp_path / "models" / "third"))
    ours, theirs = weights(first), weights(second)
    assert third.keys() == ours.keys()
    for name, weight in third.items():
        torch.testing.assert_close(weight, (2 * ours[name] + theirs[name]) / 3)
    folder = tmp_path / "models" / "third"
    assert load_model(folder) is not None and (folder / "tokenizer.json").is_file()


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    first, wide = save_pocket_like(tmp_path / "first"), save_pocket_like(tmp_path / "wide", width=64)
    with pytest.raises(ModelError, match=r"built differently: \d+ weights differ in name or size"):
        merge(first, wide, 0.5, tmp_path / "merged")
    with pytest.raises(ConfigurationError, match=r"from 0 to 1, got 1\.5"):
        merge(first, first, 1.5, tmp_path / "merged")
    broken = Path(shutil.copytree(first, tmp_path / "broken"))
    (broken / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="cannot read the weights"):
        merge(first, broken, 0.5, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
