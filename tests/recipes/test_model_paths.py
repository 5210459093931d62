"""Models by their id on the hub: from the local cache, downloaded where they can be, else refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from strop.errors import ModelError
from strop.models.loading.check_folder import check_model_folder
from strop.recipes.classics.grpo import grpo
from strop.recipes.model_paths import chosen_model
from strop.recipes.setting import Setting


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in a cache, as huggingface_hub keeps it; the hub itself cannot be reached."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    home = tmp_path / "cache" / "models--me--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("a" * 40)
    folder = home / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_text("")
    return folder


def test_an_id_means_the_snapshot_in_the_cache(snapshot: Path, tmp_path: Path) -> None:
    assert chosen_model("me/tiny") == str(snapshot) == grpo(Setting(model="me/tiny")).model
    (tmp_path / "me" / "tiny").mkdir(parents=True)
    assert chosen_model("me/tiny") == "me/tiny", "a folder that is there comes first"
    assert [chosen_model(name) for name in ("pocket", "/no/such/folder", "nothing")] == [
        "pocket",
        "/no/such/folder",
        "nothing",
    ]


def test_what_is_nowhere_is_refused(snapshot: Path) -> None:
    with pytest.raises(
        ModelError,
        match=r"model folder me/other does not exist; need .* does not hold the model me/other.*`hf download me/other`",
    ):
        chosen_model("me/other")
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"has no config\.json"):
        check_model_folder(Path(chosen_model("me/tiny")))


def test_nothing_is_imported_for_it_before_it_is_asked_for() -> None:
    assert "huggingface_hub" not in vars(sys.modules["strop.recipes.model_paths"])
