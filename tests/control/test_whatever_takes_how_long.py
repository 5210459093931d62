"""Without lag, a curriculum does not depend on how long completions and judges took: the same ledger, row for row.

Every recipe that chooses tasks or rollouts by what was seen is run on a virtual clock with several timings; groups
without contrast are dropped, so that new ones are chosen while others of the same version are still being judged.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from strop.capabilities import Loads, Meets, inside
from strop.control.budgets.fixed import Fixed
from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.uniform import Uniform
from strop.filter.gates.zero_variance import ZeroVariance
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.recipes import build, find_recipes, parameters_of, recipe_named
from strop.roles import Reward
from strop.run import Run
from strop.types import ZERO_TO_ONE, Group, ScoreRange
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened

ENDS, BETWEEN = (0, 3), (1, 2)  # timings: those furthest apart, and the others


def adaptive() -> list[str]:
    """Recipes with a sampler, budget or pass-rate estimator that learns, and nothing that must be given first."""
    found = []
    for name, recipe in find_recipes().items():
        if any(each.is_required for each in parameters_of(recipe).values()):
            continue
        run = build(recipe, {})
        kinds = type(run.sampler), type(run.budget), type(run.estimator)
        if kinds != (Uniform, Fixed, Counts) and run.warmup is None:
            found.append(name)
    return found


ADAPTIVE = adaptive()


@dataclass(frozen=True)
class Slow(Reward):
    """The environment's outcome by the completion's last digit and the task, after a while that differs with the
    timing.
    """

    timing: int
    name: ClassVar[str] = "outcome"
    is_inline: ClassVar[bool] = True
    grades: ClassVar[ScoreRange] = ZERO_TO_ONE

    async def __call__(self, group: Group) -> list[float]:
        await asyncio.sleep(_number(f"{self.timing}/{group.number}/{len(group.rollouts)}") % 3 * 4)
        limit = _number(group.task.id) % 12  # some tasks are never solved, some always
        return [float(int(rollout.completion[-1:] or 0) < limit) for rollout in group.rollouts]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def played(name: str, model: Path, folder: Path, timing: int) -> str:
    """The ledger's digest after a few steps of the recipe's control parts."""
    made = build(recipe_named(name), {})
    parts: dict[str, Any] = {field: getattr(made, field) for field in ("envs", "sampler", "budget", "estimator")}
    engine = Scripted(lambda prompt, key: "1" * (1 + key % 5) + str(key % 10), seconds_per_token=1 + timing)
    gates = () if made.budget.size == 1 else (ZeroVariance(),)
    run: Run = make_run(steps=5, engine=engine, rewards=(Slow(timing),), gates=gates, **parts)
    with opened(run, model, folder / f"{timing}.db") as (flow, _):
        for part in inside((run.sampler, run.budget, run.estimator), Loads):
            part.load_model(model, 0)
        for met in inside((run.sampler, run.budget, run.estimator), Meets):
            met.meet(flow.policy)
        run_virtually(train(flow))
        return flow.ledger.digest()


@pytest.mark.parametrize("name", ADAPTIVE)
def test_the_same_ledger_whatever_took_how_long(name: str, model: Path, tmp_path: Path) -> None:
    assert len({played(name, model, tmp_path, timing) for timing in ENDS}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ADAPTIVE)
def test_nor_between_the_furthest(name: str, model: Path, tmp_path: Path) -> None:
    assert len({played(name, model, tmp_path, timing) for timing in (*ENDS, *BETWEEN)}) == 1
