"""Models and datasets of the Hugging Face hub: the snapshot in the local cache, or a download.

Only files of the requested patterns are downloaded, and none of them is ever executed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from strop.errors import ConfigurationError, StropError

Kind = Literal["model", "dataset"]
_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # as the hub has them: no part is a way up


class NotOnHub(Exception):  # noqa: N818 (it says what was found)
    """Neither cached nor downloadable; the message has the reason and a remedy."""


def is_hub_id(name: str) -> bool:
    """Whether `owner/name` is no place here: where there is a folder `owner`, a folder in it is what is missing."""
    return bool(_ID.fullmatch(name)) and not Path(name.split("/")[0]).exists()


def snapshot(name: str, kind: Kind, patterns: Sequence[str], is_whole: Callable[[Path], bool]) -> Path:
    """Its folder in the cache, whose path names the revision; downloaded where it is not whole there."""
    from huggingface_hub import constants, snapshot_download

    try:
        cached = Path(snapshot_download(name, repo_type=kind, local_files_only=True))
        if is_whole(cached):
            return cached
    except (OSError, ValueError):
        pass
    if not constants.HF_HUB_OFFLINE:
        print(f"{name} is no folder here: looking for it on the Hugging Face hub", file=sys.stderr)
    try:
        return Path(snapshot_download(name, repo_type=kind, allow_patterns=list(patterns)))
    except (OSError, ValueError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise NotOnHub(_told(name, kind, said[0])) from None


def push(folder: Path, name: str, is_public: bool = False) -> str:
    """Upload a model folder as `owner/name` with the hub's own client; returns its address."""
    from huggingface_hub import HfApi, constants

    if not _ID.fullmatch(name):
        raise ConfigurationError(f"--push takes OWNER/NAME, as the Hugging Face hub has it, got {name!r}")
    if constants.HF_HUB_OFFLINE:
        raise ConfigurationError("HF_HUB_OFFLINE is set, so nothing is pushed: unset it")
    api = HfApi()
    try:
        place = api.create_repo(name, private=not is_public, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, commit_message="Model trained with strop")
    except (OSError, ValueError) as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise StropError(
            f"{name} was not pushed to {api.endpoint}: {said} (hf auth login, or HF_TOKEN, says who you are)"
        ) from None
    return str(place)


def _told(name: str, kind: Kind, said: str) -> str:
    from huggingface_hub import constants

    hub = "HF_HUB_OFFLINE is set, so the hub is not asked" if constants.HF_HUB_OFFLINE else f"the hub said: {said}"
    word = "" if kind == "model" else f" --repo-type {kind}"
    return (
        f"the local cache {constants.HF_HUB_CACHE} does not hold the {kind} {name}, and {hub}. "
        f"`hf download{word} {name}` fills the cache where there is a network"
    )
