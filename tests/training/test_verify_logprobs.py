"""An engine whose logprobs are not those of the weights it claims is found, though its fingerprints agree."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from strop.backends import Completion, WeightVersion
from strop.control.admission.bounded_lag import BoundedLag
from strop.errors import DeliveryError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import read_rows
from strop.training.batch import ORIGINS
from strop.training.trainers.torch import TorchTrainer
from strop.training.verify_logprobs import judged, keep_ratios, scorable
from strop.types import Group, IntArray, Message, Origin, Sampling, Task
from tests.building import make_batch
from tests.observe.folders import rollout, turn
from tests.parts import EvenLength


def make_run(model: Path, **parts: Any) -> Run:
    values = {"model": str(model), "steps": 4, "groups_per_step": 4, "group_size": 4, "max_tokens": 12}
    values |= {"heldout_tasks": 2, "heldout_every": 0, "learning_rate": 1e-2, "seed": 1}
    return replace(build(recipe_named("grpo"), values), rewards=(EvenLength(),), rescore_every=2, **parts)


@dataclass
class Liar(TorchEngine):
    """Samples as it should and reports logprobs that are off by a little."""

    shift: float = 0.01

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        said = await super().sample(prompt, sampling, key)
        return replace(said, logprobs=said.logprobs + np.float32(self.shift))


@dataclass
class Stale(TorchEngine):
    """Goes on with the first weights it got, and answers with the fingerprints of the later ones."""

    _is_loaded: bool = field(default=False, init=False, repr=False, compare=False)

    async def load(self, version: WeightVersion) -> str:
        if not self._is_loaded:
            self._is_loaded = True
            return await super().load(version)
        self.version = version.step
        return version.fingerprint


def test_an_honest_engine_differs_by_rounding_only(model: Path, tmp_path: Path) -> None:
    launch(make_run(model), tmp_path, "run")
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows if "rescored_difference" in row] == [1, 3]
    for row in (rows[1], rows[3]):
        assert row["rescored_difference"] < 1e-5 and row["rescored_difference_max"] < 1e-4
        assert row["rescored_outside"] == 0.0


def test_tokens_of_the_version_are_found_in_an_asynchronous_run_too(model: Path, tmp_path: Path) -> None:
    launch(make_run(model, admission=BoundedLag(4)), tmp_path, "run")
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert rows[1]["rescored_difference"] < 1e-5, "the first batch is of the first weights, whatever the lag"
    ledger = Ledger(tmp_path / "run" / "ledger.db", read_only=True)
    assert ledger.rated_steps() == [1, 3]  # where all is stale nothing is proven, and ratios tell how stale
    kept = np.concatenate([t.ratios for t in ledger.sample(3, 99) if t.ratios is not None])
    assert rows[3]["ratio"] == pytest.approx(kept.mean(), abs=1e-3)  # as the trainer found it
    assert rows[3]["drift"] == pytest.approx(abs(np.log(kept)).mean(), abs=1e-3) and (rows[3]["drift"] > 1e-3) == (
        rows[3]["lag"] > 0
    )
    ledger.close()


def test_a_trainer_with_snapshots_proves_stale_tokens_too(model: Path, tmp_path: Path) -> None:
    run = make_run(model, admission=BoundedLag(2), trainer=TorchTrainer(learning_rate=1e-2, snapshots=3))
    launch(run, tmp_path, "run")
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert max(row["lag"] for row in rows[1:]) > 0, "nothing was stale: nothing was tested"
    proven = [row for row in rows if "rescored_difference" in row]
    assert [row["step"] for row in proven] == [1, 3] and all(row["rescored_difference"] < 1e-5 for row in proven)


def test_ratios_are_kept_of_what_was_scored_again(model: Path, tmp_path: Path) -> None:
    """The engine says 0.0005 more than it drew with: to the trainer every token is that much rarer."""
    launch(make_run(model, engine=Liar(shift=5e-4)), tmp_path, "run")
    rows, ledger = read_rows(tmp_path / "run" / "metrics.jsonl"), Ledger(tmp_path / "run" / "ledger.db", read_only=True)
    assert ledger.rated_steps() == [1, 3]
    for step in (1, 3):
        kept = [rollout.ratios for rollout in ledger.sample(step, 99)]
        assert len(kept) == 16 and all(each is not None for each in kept)  # a batch is one batch here
        ratios = np.concatenate([each for each in kept if each is not None])
        assert rows[step]["ratio"] == pytest.approx(np.exp(-5e-4), abs=1e-4)
        assert len(ratios) == sum(rollout.num_tokens for rollout in ledger.sample(step, 99))
        assert ratios == pytest.approx(np.exp(-5e-4), abs=6e-4) and ratios.mean() < 0.9998
    assert all(rollout.ratios is None for rollout in ledger.sample(2, 99))
    ledger.close()


def test_ratios_by_hand() -> None:
    batch = make_batch([[-1.0, -2.0], [-0.5, -3.0]])
    batch.versions = torch.tensor([-1, 7, 7, -1, -1, 7])  # nobody sampled the first token of the second rollout
    said = batch.behavior_logprobs + torch.tensor([9.0, np.log(2), np.log(0.5), 9.0, 9.0, 0.0], dtype=torch.float64)
    task = Task((Message("user", "?"),), "", "test")
    made = [rollout(task, name, 1.0, turn("a")) for name in (*batch.rollout_ids, "another")]
    keep_ratios([Group(0, task, made)], batch, said)
    assert made[0].ratios is not None and made[0].ratios.tolist() == pytest.approx([2.0, 0.5])
    assert made[1].ratios is not None and made[1].ratios.tolist() == pytest.approx([np.nan, 1.0], nan_ok=True)
    assert made[2].ratios is None


def test_stale_tokens_of_an_engine_with_old_weights_are_found_with_snapshots(model: Path, tmp_path: Path) -> None:
    run = make_run(
        model, admission=BoundedLag(2), engine=Stale(), trainer=TorchTrainer(learning_rate=1e-2, snapshots=3)
    )
    with pytest.raises(DeliveryError, match="scored again"):
        launch(replace(run, rescore_every=1, steps=12), tmp_path, "run")


def test_an_engine_that_lies_about_its_logprobs_stops_the_run(model: Path, tmp_path: Path) -> None:
    with pytest.raises(
        DeliveryError, match=r"tokens of version 0, scored again.* by 0\.01 on average \(limit 0\.001\)"
    ):
        launch(make_run(model, engine=Liar()), tmp_path, "run")


def test_an_engine_with_old_weights_and_right_fingerprints_stops_the_run(model: Path, tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match="tokens of version 2, scored again"):
        launch(make_run(model, engine=Stale()), tmp_path, "run")
    assert read_rows(tmp_path / "run" / "metrics.jsonl")[-1]["step"] == 2


def test_it_never_asks_where_there_is_nothing_to_compare(model: Path, tmp_path: Path) -> None:
    launch(make_run(model, engine=Liar(), sampling=Sampling(top_k=5, max_tokens=12)), tmp_path, "truncated")
    launch(replace(make_run(model, engine=Liar()), rescore_every=0), tmp_path, "never")
    for name in ("truncated", "never"):
        assert not any("rescored_difference" in row for row in read_rows(tmp_path / name / "metrics.jsonl"))


def test_metrics_by_hand() -> None:
    batch = make_batch([[-1.0, -2.0], [-0.5, -3.0], [-1.0]])
    batch.version = 7
    batch.versions = torch.tensor([-1, 7, 7, -1, 6, 7, -1, 7])
    sampled = scorable(batch)
    assert sampled.tolist() == [False, True, True, False, False, False, False, True], "the second rollout is mixed"
    batch.origins = torch.tensor([0, 0, ORIGINS.index(Origin.GUIDED)])
    assert scorable(batch).tolist() == [False, True, True, *[False] * 5], "the third was sampled behind another prompt"
    batch.origins = torch.zeros(3, dtype=torch.int64)
    batch.versions = torch.where(batch.versions == 7, 5, batch.versions)
    assert not scorable(batch).any(), "the weights of version 5 are not held any more"
    batch.fill("old", batch.behavior_logprobs)
    assert scorable(batch).tolist() == sampled.tolist(), "a snapshot of version 5 is"
    said = batch.behavior_logprobs + torch.tensor([0, 0.3, -0.0, 0, 9, 9, 0, -0.06], dtype=torch.float64)
    metrics = judged(batch, said, sampled, limit=1.0)
    assert metrics["rescored_difference"] == pytest.approx(0.12) and metrics[
        "rescored_difference_max"
    ] == pytest.approx(0.3)
    assert metrics["rescored_outside"] == pytest.approx(1 / 3)
    with pytest.raises(DeliveryError, match=r"3 tokens of version 5.*0\.12 on average \(limit 0\.1\).*33\.3%"):
        judged(batch, said, sampled, limit=0.1)
    with pytest.raises(DeliveryError, match="nan on average"):
        judged(batch, said * float("nan"), sampled, limit=0.1)
