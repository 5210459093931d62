"""Paths of datasets: local files and folders, or snapshots of Hugging Face hub datasets in the local cache.

`owner/name/table` names one table of a hub dataset with several, as `openai/gsm8k/main`.
"""

from __future__ import annotations

from pathlib import Path

from strop.environments.data.hf_dataset import FORMATS, tables_in
from strop.errors import DataError
from strop.storage.hub import NotOnHub, is_hub_id, snapshot

_FILES = [f"*{suffix}" for suffix in FORMATS]  # data files only, never a loading script


def chosen_dataset(name: str) -> str:
    """The local file or folder of a dataset."""
    owner_and_name, table = "/".join(name.split("/")[:2]), "/".join(name.split("/")[2:])
    if Path(name).exists() or name.endswith(tuple(FORMATS)):
        return name
    if not is_hub_id(owner_and_name) or ".." in Path(table).parts:
        raise DataError(f"there is no folder {name}; a dataset on the Hugging Face hub is {_FORM}")
    try:
        folder = snapshot(owner_and_name, "dataset", _FILES, lambda cached: bool(tables_in(cached / table)))
    except NotOnHub as error:
        raise DataError(f"there is no folder {name}, and {error}") from None
    return str(_table(folder, owner_and_name, table))


_FORM = "dataset:OWNER/NAME or dataset:OWNER/NAME/TABLE"


def _table(folder: Path, name: str, table: str) -> Path:
    known = tables_in(folder)
    if not known:
        raise DataError(f"the dataset {name} holds no {', '.join(FORMATS)} file; loading scripts are never run")
    if not table and len(known) == 1:
        return folder
    if table not in known:
        which = f"but no table {table}" if table else "so name one"
        choices = ", ".join(f"dataset:{name}/{each}" for each in known if each)
        raise DataError(f"the dataset {name} holds {len(known)} tables, {which}: {choices}")
    return folder / table
