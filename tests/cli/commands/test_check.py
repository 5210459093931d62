"""`strop check` says whether a model can be trained, and agrees with transformers; what is no model is a sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from strop.cli.commands.check import check
from strop.errors import ModelError
from strop.models.loading.model_names import POCKET
from strop.pocket.tokenizer import END, TOKEN_IDS
from strop.pocket.tokenizer import save_tokenizer as save_pocket_tokenizer
from tests.models.judge import judged
from tests.models.sweep import read_table, twin_of
from tests.models.tower_models import save_tower_model
from tests.test_model_folders import changed_config
from tests.tiny_models import save_pocket_like, save_tiny_model

_BUILT = [name for name, each in read_table().items() if each.verdict != "unbuilt"]
FIFTY = [_BUILT[place * len(_BUILT) // 50] for place in range(50)]


def checked(model: Path | str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """The exit code, and rows by what they are about."""
    code = check(str(model), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == (code == 0)
    return code, {row["about"]: row for row in told["rows"]} | {"seconds": told["seconds"]}


def test_the_bundled_model_can_be_trained(capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = checked("pocket", capsys)
    assert code == 0 and rows["seconds"] < 15
    assert {row["state"] for name, row in rows.items() if name != "seconds"} == {"ok"}
    assert rows["model"]["answer"].startswith("llama, 1.79M weights, 4 layers, 512 positions")
    assert rows["twin: gradient"]["numbers"]["difference"] < 1e-3
    assert rows["speed here"]["numbers"]["sampled_per_second"] > 100
    assert rows["H200"]["numbers"]["needed"] < rows["H200"]["numbers"]["total"]
    assert check("pocket", as_json=False) == 0
    assert "pocket can be trained" in capsys.readouterr().out


def test_experts_without_a_template_are_kept_and_the_template_is_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, rows = checked(save_tiny_model(tmp_path, "qwen3_moe"), capsys)
    assert code == 1 and "taken again in training" in rows["experts"]["answer"]
    assert "has no chat template" in rows["folder"]["answer"] and rows["weights"]["state"] == "ok"


def test_a_folder_with_a_picture_tower_is_compared_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Placeholders of pictures are never sampled, which transformers does not know."""
    code, rows = checked(save_tower_model(tmp_path, "qwen2_5_vl"), capsys)
    assert code == 0 and rows["pictures"]["answer"].startswith("it reads pictures")
    assert rows["bfloat16"]["state"] == "ok" and rows["weights"]["numbers"]["difference"] < 1e-4


def test_a_family_that_does_not_run_is_refused_with_what_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twin_of("bloom", tmp_path)
    code, rows = checked(tmp_path, capsys)
    assert code == 1 and rows["twin"]["state"] == rows["weights"]["state"] == "refused"
    assert "docs/models.md" in rows["twin"]["remedy"] and "Families that run" not in rows["twin"]["answer"]


def test_tensors_that_do_not_fit_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_pocket_like(tmp_path)
    path, lost = folder / "model.safetensors", "model.layers.0.mlp.up_proj.weight"
    whole = load_file(path)
    save_file({name: each for name, each in whole.items() if name != lost}, path, metadata={"format": "pt"})
    code, rows = checked(folder, capsys)
    assert code == 1 and f"1 missing: {lost}" in rows["weights"]["answer"] and rows["twin: fork"]["state"] == "ok"
    save_file(whole | {"model.tower.weight": torch.ones(2)}, path, metadata={"format": "pt"})
    code, rows = checked(folder, capsys)
    assert code == 1 and "model.tower.weight" in rows["weights"]["answer"]


def test_what_is_no_model_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("weights")
    with pytest.raises(ModelError, match=r"notes.txt is a file; give the model's folder"):
        check(str(tmp_path / "notes.txt"), False)
    with pytest.raises(ModelError, match=r"there is no model .*pockets'.*did you mean pocket"):
        shutil.copytree(POCKET, tmp_path / "pocket")
        check(str(tmp_path / "pockets"), False)
    unknown = changed_config(tmp_path / "pocket", model_type="nonesuch")
    with pytest.raises(ModelError, match=r"describes no model that transformers knows: .*nonesuch"):
        check(str(unknown), False)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"empty has no config.json"):
        check(str(tmp_path / "empty"), False)
    bare = save_pocket_like(tmp_path / "bare")
    for each in bare.glob("tokenizer*"):
        each.unlink()
    code, rows = checked(bare, capsys)
    assert code == 1 and "has no tokenizer" in rows["folder"]["answer"]


@pytest.mark.families
@pytest.mark.parametrize("family", FIFTY)
def test_the_verdict_agrees_with_transformers(tmp_path: Path, capsys: pytest.CaptureFixture[str], family: str) -> None:
    """Half a hundred families with a template: what `strop check` says is what an independent forward pass says."""
    twin_of(family, tmp_path)
    found = judged(tmp_path)
    save_pocket_tokenizer(tmp_path, 512)
    code, rows = checked(changed_config(tmp_path, eos_token_id=TOKEN_IDS[END]), capsys)
    refused = [name for name, row in rows.items() if name != "seconds" and row["state"] == "refused"]
    assert (code == 0) == (found.verdict == "runs"), (found, refused)
    assert rows["seconds"] < 15
