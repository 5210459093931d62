"""A run with a scripted engine that keeps what it read and counts what it wrote, and what its ledger then holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from strop.backends import Completion
from strop.control.samplers.uniform import Uniform
from strop.pipeline import train
from strop.roles import Environment
from strop.storage.ledger.ledger import Ledger
from strop.types import Group, IntArray, Metrics, Rollout, Sampling
from tests.clock import run_virtually
from tests.recipes.guide.test_guide_hinted_when_lost import Reading
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like


@dataclass
class Counting(Reading):
    """Keeps prompts by key, and how many tokens it wrote."""

    sampled: int = 0

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        completion = await super().sample(prompt, sampling, key)
        self.sampled += len(completion.tokens)
        return completion

    def prompt_of(self, rollout: Rollout, turn: int = 0) -> str:
        """What a rollout's turn reads in the ledger."""
        return self._tokenizer.decode(rollout.turns[turn].prompt.tolist())


@dataclass
class Watched:
    """What came of a run."""

    engine: Counting
    rows: list[Metrics]
    drawn: list[Group]  # as trained
    made: list[Rollout]  # all rows of the ledger

    @property
    def num_sampled(self) -> int:
        """Tokens that some weights wrote, over all rows."""
        return sum(rollout.num_sampled for rollout in self.made)

    def is_counted_once(self) -> bool:
        """Whether the ledger's rows hold what the engine wrote, and budgets count the same."""
        return self.rows[-1]["tokens_generated"] == self.num_sampled == self.engine.sampled


def watched(tmp_path: Path, script: Any, env: Environment, steps: int = 2, context: int = 96, **parts: Any) -> Watched:
    """Train on scripted completions."""
    engine, path = parts.pop("engine", None) or Counting(script), tmp_path / "ledger.db"
    run = make_run(steps, engine=engine, envs=(env,), sampler=Uniform((env,)), **parts)
    with opened(run, save_pocket_like(tmp_path / "model"), path) as (flow, recorder):
        flow.policy = replace(flow.policy, context=context)
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
    ledger = Ledger(path, read_only=True)
    drawn = [group for step in range(1, steps + 1) for group in ledger.trained_groups(step)]
    made = [ledger.rollout(name) for (name,) in ledger._rows("SELECT id FROM rollouts ORDER BY number, rowid")]
    ledger.close()
    return Watched(engine, recorder.rows, drawn, made)
