"""Many runs side by side (strop.launch.experiments.side_by_side): the same bits as one by one, and one that fails is
named.
"""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from strop.errors import ConfigurationError, StropError
from strop.launch.experiments.side_by_side import Job, SideBySide, how_many, is_finished, log_of
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.storage.checkpoint import listed
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from tests.tiny_models import save_pocket_like


def tiny(model: str, seed: int, steps: int = 2, every: int = 1) -> Run:
    return grpo(
        Setting("arithmetic:1", model, seed, steps, 2, 2, max_tokens=6, heldout_tasks=2, checkpoint_every=every)
    )


def broken(model: str) -> Run:
    raise ConfigurationError(f"there is something wrong with {Path(model).name}")


def killed(model: str) -> Run:
    os.kill(os.getpid(), signal.SIGKILL)
    return tiny(model, 0)


def bits(root: Path, name: str) -> tuple[bytes, str, list[bytes]]:
    """All of a run that does not depend on the wall clock: metrics, ledger, last weights."""
    folder = RunFolder(root / name)
    ledger = Ledger(folder.ledger, read_only=True)
    weights = [path.read_bytes() for path in sorted(listed(folder.checkpoints)[-1].glob("*.safetensors"))]
    return folder.metrics.read_bytes(), ledger.digest(), weights


def test_side_by_side_or_one_by_one_all_bits_are_the_same(tmp_path: Path) -> None:
    model = str(save_pocket_like(tmp_path / "model"))
    jobs = [Job(f"seed{seed}", partial(tiny, model, seed)) for seed in range(3)]
    for processes in (1, 3):
        SideBySide(tmp_path / str(processes), processes).run(jobs)
    found = [[bits(tmp_path / processes, job.name) for job in jobs] for processes in ("1", "3")]
    assert found[0] == found[1]
    assert len({metrics for metrics, _, _ in found[0]}) == 3, "seeds differ, or nothing was compared"


def test_a_failed_run_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    model = str(save_pocket_like(tmp_path / "model"))
    root = tmp_path / "runs"
    good = [Job(f"seed{seed}", partial(tiny, model, seed)) for seed in range(2)]
    with pytest.raises(StropError) as caught:
        SideBySide(root, 2).run([Job("bad", partial(broken, model)), Job("dead", partial(killed, model)), *good])
    told = str(caught.value)
    assert told.startswith("2 of 4 runs failed")
    assert "bad: ConfigurationError: there is something wrong with model" in told
    assert "dead: its process ended by signal SIGKILL" in told
    assert all(is_finished(root / job.name) for job in good)
    before = {job.name: (root / job.name / "summary.json").stat().st_mtime_ns for job in good}
    SideBySide(root, 2).run([Job("bad", partial(tiny, model, 5)), *good])  # mended: only it is run
    assert is_finished(root / "bad")
    assert before == {job.name: (root / job.name / "summary.json").stat().st_mtime_ns for job in good}
    assert "Traceback" in log_of(root, "bad").read_text()


def test_a_run_that_had_nothing_to_go_on_from_begins_anew(tmp_path: Path) -> None:
    model = str(save_pocket_like(tmp_path / "model"))
    (tmp_path / "runs" / "seed0").mkdir(parents=True)
    (tmp_path / "runs" / "seed0" / "recipe.py").write_text("run = ")  # ended while it was written
    SideBySide(tmp_path / "runs", 1).run([Job("seed0", partial(tiny, model, 0))])
    assert is_finished(tmp_path / "runs" / "seed0")


def test_interrupted_all_runs_save_where_they_are_and_go_on_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C once: nothing more begins, what runs ends its step, and the same call goes on to the same bits."""
    model = str(save_pocket_like(tmp_path / "model"))
    jobs = [Job("long", partial(tiny, model, 0, 200, 200)), Job("next", partial(tiny, model, 1))]
    root, began = tmp_path / "runs", [False]

    def interrupt() -> None:
        if not began[0] and read_rows(root / "long" / "metrics.jsonl")[2:]:
            began[0] = True
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        SideBySide(root, 1, tell=interrupt).run(jobs)
    assert "1 runs finish their step and save" in capsys.readouterr().err
    assert not (root / "next").exists(), "it began after the interrupt"
    assert 0 < read_rows(root / "long" / "metrics.jsonl")[-1]["step"] < 200
    SideBySide(root, 2).run(jobs)
    SideBySide(tmp_path / "whole", 1).run(jobs[:1])
    assert is_finished(root / "next") and bits(root, "long") == bits(tmp_path / "whole", "long")


@pytest.mark.parametrize(
    ("jobs", "cores", "threads", "expected"),
    [(18, 16, 1, 9), (18, 32, 1, 18), (6, 2, 1, 2), (7, 4, 2, 2), (1, 16, 1, 1), (0, 4, 1, 1), (3, 1, 4, 1)],
)
def test_as_many_as_cores_allow_in_the_fewest_rounds(
    jobs: int, cores: int, threads: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert how_many(jobs, threads) == expected
