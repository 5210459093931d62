"""Command `strop export`: a run's model as a Hugging Face folder, only its adapters, or one GGUF file.

A run that trains several policies writes one model per policy, by name, into the folder `out`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from strop.errors import CheckpointError, ConfigurationError
from strop.observe.run_files.run_info import policies_of
from strop.storage import checkpoint
from strop.storage.hub import push
from strop.storage.run_folder import RunFolder

CONVERTER = "convert_hf_to_gguf.py"  # of llama.cpp
_ADAPTERS = "adapter"
_OWN = ("manifest.json", "roles.json")  # needed only to resume a run, as is trainer.*


def export_and_push(path: Path, out: Path | None, what: str, step: str, name: str, is_public: bool) -> None:
    """Export into a folder, and push that to the hub as `name`; without a folder of its own, from one that goes."""
    if not name and out is None:
        raise ConfigurationError("say where to write: -o FOLDER, or --push OWNER/NAME for the Hugging Face hub")
    if name and what == "gguf" and out is None:
        raise ConfigurationError("--push takes a folder: --as model or --as adapter")
    with tempfile.TemporaryDirectory() as scratch:
        written = out or Path(scratch) / "model"
        export(path, written, what, step)
        if name:
            print(f"{what} → {push(written, name, is_public)}")


def export(path: Path, out: Path, what: str, step: str = "newest") -> None:
    """Write `what` (model, adapter or gguf) of a checkpoint: newest complete, best, or of one step."""
    if what not in ("model", "adapter", "gguf"):
        raise ConfigurationError(f"--as must be model, adapter or gguf, got {what!r}")
    if out.exists():
        raise ConfigurationError(f"{out} exists: choose another --out, or remove it")
    folder = RunFolder(path)
    folder.require_recipe()
    saved = _chosen(folder, step)
    policy_names = policies_of(folder.recipe)
    if len(policy_names) < 2:
        _write(saved, out, what)
        print(f"{what} of {saved} → {out}")
        return
    places = [
        saved,
        *(saved / checkpoint.POLICIES / policy_name for policy_name in policy_names[1:]),
    ]  # as `TrainerPerPolicy` saves them
    if missing := [policy_name for policy_name, place in zip(policy_names, places, strict=True) if not place.is_dir()]:
        raise CheckpointError(f"{saved} has no model of policy {', '.join(missing)}: is it a checkpoint of this run?")
    for policy_name, place in zip(policy_names, places, strict=True):
        to = out / (f"{policy_name}.gguf" if what == "gguf" else policy_name)
        _write(place, to, what)
        print(f"{what} of {policy_name} in {saved} → {to}")


def _write(saved: Path, out: Path, what: str) -> None:
    if what == "adapter" and not (saved / _ADAPTERS).is_dir():
        raise ConfigurationError(f"{saved} has no adapters: the run trained all weights; export with --as model")
    out.parent.mkdir(parents=True, exist_ok=True)
    if what == "gguf":
        _to_gguf(saved, out)
    elif what == "adapter":
        shutil.copytree(saved / _ADAPTERS, out)
    else:
        _copy(saved, out)


def _chosen(folder: RunFolder, step: str) -> Path:
    if step == "newest":
        return checkpoint.newest_whole(folder.checkpoints)[0]
    saved = folder.checkpoints / ("best" if step == "best" else f"step-{step}")
    if not saved.is_dir():
        known = ", ".join(each.name.removeprefix("step-") for each in checkpoint.listed(folder.checkpoints))
        raise CheckpointError(f"{folder.path} has no checkpoint {step}: there are {known or 'none'}")
    checkpoint.verify(saved)
    return saved.resolve()


def _copy(saved: Path, out: Path) -> None:
    """Copy the model and its tokenizer, without the state for resuming."""
    out.mkdir(parents=True)
    for each in saved.iterdir():
        if each.is_file() and each.name not in _OWN and not each.name.startswith("trainer."):
            shutil.copyfile(each, out / each.name)


def _to_gguf(saved: Path, out: Path) -> None:
    """Convert with llama.cpp's converter if installed (it supports every architecture), else with our own."""
    converter = shutil.which(CONVERTER)
    if converter is None:
        from strop.models.loading.gguf_file import write_gguf

        return write_gguf(saved, out)
    with tempfile.TemporaryDirectory() as scratch:
        _copy(saved, Path(scratch) / "model")
        words = [sys.executable, converter, str(Path(scratch) / "model"), "--outfile", str(out)]
        done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no error output"])[-1]
        raise ConfigurationError(f"{converter} exited with {done.returncode}: {last}")
