"""What is done with a run that is there: more steps, its model elsewhere, its rollouts as rows, less on the disk."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from strop import recipe, train
from strop.cli.commands import rollouts
from strop.cli.commands.export import export
from strop.cli.commands.rollouts import write_rollouts
from strop.cli.commands.runs import clean
from strop.cli.commands.train import StartOptions, resume_run, start_run
from strop.cli.fields.arguments import parse_words
from strop.errors import CheckpointError, ConfigurationError
from strop.storage.ledger.ledger import Ledger
from tests.parts import EvenLength
from tests.tiny_models import MODEL_FILES

SMALL = {"env": "keyvalue:2", "groups_per_step": 2, "group_size": 4, "heldout_tasks": 4, "checkpoint_every": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two steps that was extended to four."""
    root = tmp_path_factory.mktemp("runs")
    train(recipe("grpo", steps=2, **SMALL), "extended", root, quiet=True)
    assert resume_run(root / "extended", ["steps=4"], quiet=True) == 0
    return root / "extended"


def test_an_extended_run_ends_with_the_bits_of_one_that_had_all_steps(finished: Path) -> None:
    train(recipe("grpo", steps=4, **SMALL), "whole", finished.parent, quiet=True)
    weights = [
        load_file(finished.parent / name / "checkpoints/step-4/model.safetensors") for name in ("extended", "whole")
    ]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])
    ledgers = [Ledger(finished.parent / name / "ledger.db", read_only=True) for name in ("extended", "whole")]
    assert ledgers[0].digest() == ledgers[1].digest()
    for ledger in ledgers:
        ledger.close()
    assert json.loads((finished / "origin.json").read_text())["extended"] == [[2, 4]]
    assert json.loads((finished / "summary.json").read_text())["steps"] == 4


@pytest.mark.parametrize(
    ("words", "said"), [(["steps=3"], "has 4 steps"), (["seed=3"], "steps=NUMBER can"), (["steps=x"], "cannot be set")]
)
def test_nothing_but_more_steps_can_be_set(finished: Path, words: list[str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        resume_run(finished, words, quiet=True)


def test_a_dry_run_shows_the_run_and_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = StartOptions("", tmp_path / "runs", "", "inline", 1, is_dry=True)
    assert start_run(parse_words(["grpo", "steps=7"]), start, quiet=True) == 0
    assert "steps=7" in (told := capsys.readouterr().out) and "Nothing was started" in told
    assert not (tmp_path / "runs").exists()


def test_the_exported_model_is_the_checkpoints_without_the_runs_own_files(finished: Path, tmp_path: Path) -> None:
    export(finished, tmp_path / "model", "model")
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == MODEL_FILES
    saved = finished / "checkpoints" / "step-4" / "model.safetensors"
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == saved.read_bytes()
    with pytest.raises(ConfigurationError, match="exists"):
        export(finished, tmp_path / "model", "model")
    with pytest.raises(ConfigurationError, match="has no adapters"):
        export(finished, tmp_path / "adapter", "adapter")
    with pytest.raises(CheckpointError, match=r"no checkpoint 2: there are .*3, 4"):
        export(finished, tmp_path / "other", "model", "2")
    export(finished, tmp_path / "best", "model", "best")
    best = finished / "checkpoints" / "best" / "model.safetensors"
    assert (tmp_path / "best" / "model.safetensors").read_bytes() == best.read_bytes() != saved.read_bytes()
    with pytest.raises(ConfigurationError, match="is not a run folder"):
        export(tmp_path, tmp_path / "other", "model")
    with pytest.raises(ConfigurationError, match="model, adapter or gguf"):
        export(finished, tmp_path / "other", "onnx")


def test_adapters_are_exported_alone(tmp_path: Path) -> None:
    run = recipe("grpo", steps=1, **SMALL)
    run = replace(run, trainer=replace(run.trainer, lora=2))
    summary = train(run, "lora", tmp_path, quiet=True)
    export(Path(summary["folder"]), tmp_path / "adapter", "adapter")
    assert {path.name for path in (tmp_path / "adapter").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }


def test_every_policy_is_exported_under_its_name(tmp_path: Path) -> None:
    run = recipe("team", steps=1, lora=2, temperature=2.0, **SMALL)
    run = replace(run, rewards=(EvenLength(),))
    summary = train(run, "team", tmp_path, quiet=True)
    folder = Path(summary["folder"])
    export(folder, tmp_path / "models", "model")
    export(folder, tmp_path / "adapters", "adapter")
    saved = folder / "checkpoints" / "step-1"
    policy_names = {
        "planner": saved,
        "critic": saved / "policy_names" / "critic",
        "actor": saved / "policy_names" / "actor",
    }
    for kind, inner, file in (
        ("models", "", "model.safetensors"),
        ("adapters", "adapter", "adapter_model.safetensors"),
    ):
        written = {path.name: (path / file).read_bytes() for path in (tmp_path / kind).iterdir()}
        assert written == {
            policy_name: (place / inner / file).read_bytes() for policy_name, place in policy_names.items()
        }
        assert len(set(written.values())) == 3
    assert (tmp_path / "models" / "critic" / "tokenizer.json").is_file()
    shutil.rmtree(saved / "policy_names")
    with pytest.raises(CheckpointError):
        export(folder, tmp_path / "again", "model", "1")


def test_a_gguf_file_needs_its_converter(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ConfigurationError, match=r"convert_hf_to_gguf\.py where it is on the PATH.*'strop\[gguf\]'"):
        export(finished, tmp_path / "model.gguf", "gguf")
    (tmp_path / "bin").mkdir()
    converter = tmp_path / "bin" / "convert_hf_to_gguf.py"
    converter.write_text(
        "#!/usr/bin/env python3\nimport pathlib, sys\nassert pathlib.Path(sys.argv[1], 'config.json').is_file()\n"
        "pathlib.Path(sys.argv[3]).write_text(' '.join(sorted(p.name for p in pathlib.Path(sys.argv[1]).iterdir())))\n"
    )
    converter.chmod(0o755)
    export(finished, tmp_path / "model.gguf", "gguf")
    assert "trainer" not in (tmp_path / "model.gguf").read_text()


def test_rollouts_are_rows_with_conversations_and_fates(finished: Path, tmp_path: Path) -> None:
    write_rollouts(finished, tmp_path / "rollouts.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rollouts.jsonl").read_text().splitlines()]
    ledger = Ledger(finished / "ledger.db", read_only=True)
    assert len(rows) == sum(ledger.counts().values()) == 4 * 2 * 4 and len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert [message["role"] for message in row["messages"][:2]] == ["user", "assistant"]
        assert row["reward"] == ledger.rollout(row["id"]).reward and row["fate"] == "trained"
        assert row["source"] == "keyvalue" and row["level"] == 2 and row["version"] in range(4)
    ledger.close()
    assert any(message["role"] == "tool" for row in rows for message in row["messages"])
    with pytest.raises(ConfigurationError, match=r"\.jsonl or \.parquet"):
        write_rollouts(finished, tmp_path / "rollouts.csv")
    with pytest.raises(ConfigurationError, match="not a run folder"):
        write_rollouts(tmp_path, tmp_path / "other.jsonl")


def test_rollouts_as_parquet_are_the_same_rows_written_in_batches(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(rollouts, "_BATCH", 10)
    write_rollouts(finished, tmp_path / "rollouts.parquet")
    write_rollouts(finished, tmp_path / "rollouts.jsonl")
    file = parquet.ParquetFile(tmp_path / "rollouts.parquet")
    rows = file.read().to_pylist()
    for row in rows:
        row |= {name: json.loads(row[name]) for name in ("messages", "other_contexts", "rewards")}
    assert rows == [json.loads(line) for line in (tmp_path / "rollouts.jsonl").read_text().splitlines()]
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [10, 10, 10, 2]


def test_clean_counts_first_and_keeps_the_newest_whole_checkpoint(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = finished / "checkpoints"
    (places / ".step-9.building").mkdir()
    before = sorted(path.name for path in places.iterdir())
    clean(finished, is_wanted=False)
    assert sorted(path.name for path in places.iterdir()) == before
    assert "checkpoints/step-3" in (told := capsys.readouterr().out) and "--yes" in told
    clean(finished.parent, is_wanted=True)
    best = (places / "best").resolve().name
    assert {path.name for path in places.glob("step-*")} == {"step-4", best}
    assert not (places / ".step-9.building").exists()
    with pytest.raises(ConfigurationError, match="is not a run folder and contains none"):
        clean(places, is_wanted=True)
