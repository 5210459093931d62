"""Tasks from local Hugging Face datasets and from the files they are made of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from strop.environments.data.hf_dataset import dataset_rows
from strop.environments.data.table import Table
from strop.errors import ConfigurationError, DataError
from strop.types import Message

datasets = pytest.importorskip("datasets")

ROWS = {"question": [f"{n}+1=?" for n in range(30)], "answer": list(range(1, 31))}


@pytest.fixture(autouse=True)
def _private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def contents(env: Table) -> set[tuple[str, str]]:
    tasks = [env.task(index, side) for side in (False, True) for index in range(30)]
    return {(task.messages[0].content, task.answer) for task in tasks}


def expected() -> set[tuple[str, str]]:
    return {(f"{n}+1=?", str(n + 1)) for n in range(30)}


def test_a_saved_dataset_and_a_split_of_several(tmp_path: Path) -> None:
    table = datasets.Dataset.from_dict(ROWS)
    table.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": table, "test": table.select(range(3))}).save_to_disk(tmp_path / "two")
    two = Table(str(tmp_path / "two"))
    assert contents(Table(str(tmp_path / "one"))) == contents(two) == expected()
    assert (two.num_tasks(), two.num_tasks(heldout=True)) == (27, 3), "those of the test split are not trained on"
    assert Table(str(tmp_path / "two"), heldout_split="").num_tasks(heldout=True) != 3
    assert len(contents(Table(str(tmp_path / "two"), split="test"))) == 3
    with pytest.raises(DataError, match="no split 'tran'; did you mean train"):
        Table(str(tmp_path / "two"), split="tran").task(0)


def test_files_and_folders_of_files(tmp_path: Path) -> None:
    table = datasets.Dataset.from_dict(ROWS)
    (tmp_path / "data").mkdir()
    table.to_parquet(tmp_path / "data" / "train-00000-of-00001.parquet")
    table.select(range(2)).to_parquet(tmp_path / "data" / "test-00000-of-00001.parquet")
    table.to_json(tmp_path / "rows.jsonl")
    (tmp_path / "latest").mkdir()
    table.to_json(tmp_path / "latest" / "latest-train.jsonl")
    assert contents(Table(str(tmp_path / "latest"))) == expected()
    assert Table(str(tmp_path / "data")).num_tasks(heldout=True) == 2
    assert contents(Table(str(tmp_path / "data"))) == expected()
    assert contents(Table(str(tmp_path / "data" / "train-00000-of-00001.parquet"))) == expected()
    assert contents(Table(str(tmp_path / "rows.jsonl"))) == expected()


def test_a_chat_in_a_column_is_read_as_a_chat(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "short"}, {"role": "user", "content": "10+88=?"}]
    datasets.Dataset.from_dict({"question": [chat], "answer": ["98"]}).save_to_disk(tmp_path / "chats")
    task = Table(str(tmp_path / "chats"), heldout_share=0.0).task(0)
    assert task.messages == (Message("system", "short"), Message("user", "10+88=?"))


def test_other_columns_and_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("ask,say\na,b\nc,\n")
    with pytest.raises(DataError, match=r"rows\.csv, row 0: `prompt` is missing .*; there is 'ask', 'say'"):
        Table(str(path)).task(0)
    with pytest.raises(DataError, match=r"row 1: `say` must be text or a number, got None"):
        Table(str(path), prompt_column="ask", answer_column="say").task(0)
    with pytest.raises(DataError, match="does not exist"):
        Table(str(tmp_path / "none")).task(0)
    (tmp_path / "notes").mkdir()
    with pytest.raises(DataError, match=r"need files of one format .* found none"):
        Table(str(tmp_path / "notes")).task(0)


def test_a_parquet_file_is_read_in_batches_and_a_damaged_one_named(tmp_path: Path) -> None:
    many = datasets.Dataset.from_dict({"question": [f"{n}+1=?" for n in range(3000)], "answer": list(range(1, 3001))})
    path = tmp_path / "many.parquet"
    many.to_parquet(path, batch_size=500)
    places = [place for place, _ in dataset_rows(path, "train")]
    assert places == [f"{path}, row {number}" for number in range(3000)]
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataError, match=r"many\.parquet cannot be read: "):
        Table(str(path)).task(0)


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.Dataset.from_dict(ROWS).save_to_disk(tmp_path)
    (tmp_path / "rows.csv").write_text("prompt,answer\na,b\n")
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for path in (tmp_path, tmp_path / "rows.csv"):
        with pytest.raises(ConfigurationError, match=r"pip install 'strop\[datasets\]'"):
            Table(str(path)).task(0)
