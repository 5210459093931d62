"""Datasets by their id on the hub: from the local cache, data files alone, and what is missing is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from strop.environments.data.table import Table
from strop.errors import DataError, ModelError
from strop.models.loading.check_folder import check_model_folder
from strop.recipes.dataset_paths import chosen_dataset
from strop.recipes.environments import parse_envs
from strop.recipes.model_paths import chosen_model


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset in a cache, as huggingface_hub keeps it; the hub itself cannot be reached."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    home = tmp_path / "cache" / "datasets--me--sums"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("a" * 40)
    folder = home / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    return folder


def write(path: Path, count: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps({"question": f"{n}+1=?", "answer": n + 1}) for n in range(count)))


def env_named(text: str) -> Table:
    (env,) = parse_envs(text)
    assert isinstance(env, Table)
    return env


def test_an_id_is_a_env_from_the_cache_with_its_own_splits_and_name(snapshot: Path) -> None:
    write(snapshot / "data" / "train-00000-of-00001.jsonl", 20)
    write(snapshot / "data" / "test-00000-of-00001.jsonl", 3)
    (snapshot / "dataset_infos.json").write_text("{}")
    env = env_named("dataset:me/sums")
    assert (env.path, env.name, env.task(0).source) == (str(snapshot), "sums", "sums")
    assert (env.num_tasks(), env.num_tasks(heldout=True)) == (17, 3), "3 of the 20 are held out too: same tasks"


def test_files_that_name_no_split_and_folders_named_by_one(snapshot: Path) -> None:
    write(snapshot / "rows.jsonl", 20)
    assert env_named("dataset:me/sums").num_tasks() + env_named("dataset:me/sums").num_tasks(heldout=True) == 20
    (snapshot / "rows.jsonl").unlink()
    write(snapshot / "train" / "0000.jsonl", 9)
    write(snapshot / "test" / "0000.jsonl", 2)
    assert env_named("dataset:me/sums").num_tasks(heldout=True) == 2


def test_of_several_tables_one_is_named(snapshot: Path) -> None:
    write(snapshot / "main" / "train.jsonl", 20)
    write(snapshot / "other" / "train.jsonl", 5)
    assert chosen_dataset("me/sums/main") == str(snapshot / "main")
    assert env_named("dataset:me/sums/main").name == "sums"
    with pytest.raises(DataError, match=r"2 tables, so name one.*dataset:me/sums/main, dataset:me/sums/other"):
        chosen_dataset("me/sums")


def test_what_is_not_there_is_said_with_a_remedy(snapshot: Path) -> None:
    missing = (
        r"no folder me/none, and the local cache .* HF_HUB_OFFLINE is set.*`hf download --repo-type dataset me/none`"
    )
    with pytest.raises(DataError, match=missing):
        chosen_dataset("me/none")
    (snapshot / "sums.py").write_text("raise SystemExit")
    with pytest.raises(
        DataError, match=r"holds no \.parquet, \.json, \.jsonl, \.csv file; loading scripts are never run"
    ):
        chosen_dataset("me/sums")
    with pytest.raises(DataError, match=r"there is no folder sums; .* is dataset:OWNER/NAME"):
        chosen_dataset("sums")


def test_a_missing_folder_in_a_folder_that_is_there_is_no_id(
    snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("runs").mkdir()
    with pytest.raises(DataError, match="there is no folder runs/nothing"):
        chosen_dataset("runs/nothing")
    with pytest.raises(ModelError, match="model folder runs/nothing does not exist"):
        check_model_folder(Path(chosen_model("runs/nothing")))
    assert not capsys.readouterr().err, "the hub was not asked"


@pytest.mark.parametrize("name", ["a/..", "../b", "a/b/../../../etc", "-a/b"])
def test_a_way_up_is_no_id(name: str) -> None:
    with pytest.raises(DataError, match="is dataset:OWNER/NAME"):
        chosen_dataset(name)
