"""A whole run whose reward hangs, raises, returns garbage, dies or forks: it goes on, and no baseline moves."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import numpy as np
import pytest

from strop.filter.scoring import Scorer
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.run_state import Flow
from strop.types import Outcome, Sampling
from tests.filter.foul import Obeys
from tests.filter.test_scoring import worker_processes
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

FAULTS = {
    "oops": "reward obeys: ValueError: could not convert string to float: 'oops' (foul.py, line 112)",
    "nan": "reward obeys: returned nan, need a finite number",
    "kill": "reward obeys: its process died (signal SIGKILL)",
    "orphan": "reward obeys: left a process running",
}
WORDS = ["1", "2", "1", "3", "2", "1", "3", "hang", *FAULTS]


def test_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROP_TEST_PARENT", str(os.getpid()))
    engine = Scripted(lambda prompt, key: WORDS[key % len(WORDS)])
    run = make_run(steps=4, engine=engine, rewards=(Obeys(),), sampling=Sampling(max_tokens=16), max_failed_share=0.9)
    with opened(run, save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db") as (flow, recorder):
        flow.scorer = Scorer(run.rewards, seconds=1.0)
        asyncio.run(_trained(flow))
        assert len(recorder.rows) == 4 and flow.ledger.violations() == []
        failed = flow.ledger._rows("SELECT error, reward, rewards FROM rollouts WHERE fate='failed'")
        assert {error for error, _, _ in failed} == set(FAULTS.values())
        assert {(reward, json.loads(rewards) == {}) for _, reward, rewards in failed} == {(None, True)}
        hung = flow.ledger._rows("SELECT DISTINCT reward, outcome FROM rollouts WHERE error LIKE '%counts as wrong'")
        assert hung == [(0.0, "finished")], "a completion that hangs its scorer does not leave its group"
        assert any("overrun_share" in metrics for metrics in recorder.rows)
        for step in range(1, 5):
            groups = flow.ledger.trained_groups(step)
            assert len(groups) == 4
            run.advantage(groups)
            for group in groups:  # siblings of a failed rollout are compared with each other alone
                assert all(t.outcome is not Outcome.FAILED for t in group.rollouts)
                paid = np.array([t.reward for t in group.rollouts])
                found = [float(t.advantages[0]) for t in group.rollouts if t.advantages is not None]
                np.testing.assert_allclose(found, paid - paid.mean(), atol=1e-6)
    assert worker_processes() == []


async def _trained(flow: Flow) -> None:
    try:
        await train(flow)
    finally:
        await flow.scorer.close()
