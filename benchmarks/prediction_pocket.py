"""How near pass-rate estimators come to the truth on the bundled model: a short run's groups against an oracle's table.

    python benchmarks/prediction_pocket.py [--seeds 3] [--json] [--save NAME]

GRPO trains on 16 tasks each of six environments and levels, in turn, 16 groups of 8 rollouts a step, until each task
was
tried 8 times; the pass-rate estimators are shown every group as it came, with the version of its weights, then asked
about all 96
tasks. The truth is the share of right ones among 256 new rollouts a task with the last weights, whose own error of
0.03 at most is in all figures alike. The Brier score is that of one of these rollouts. The `ratio` is the error of
offsets to that of the last seen share.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

from prediction import ESTIMATORS, Doubles, rank_correlation

from strop.control.samplers.few import Few
from strop.evaluation import evaluate
from strop.filter.scoring import Scorer
from strop.generate.policy import Policy
from strop.launch.running.launch import launch
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Group, Task

ENV = "arithmetic:1+arithmetic:4+arithmetic:6+countdown:3+countdown:4+keyvalue:3"
TASKS, VISITS, ROLLOUTS, GROUPS, ORACLE = 16, 8, 8, 16, 256  # tasks of each environment


def run_of(seed: int, tasks: int, visits: int) -> Run:
    """A run that tries the same tasks over and over."""
    sizes = {"groups_per_step": GROUPS, "group_size": ROLLOUTS, "heldout_tasks": 1, "heldout_every": 0}
    run = grpo(Setting(env=ENV, seed=seed, checkpoint_every=1000, **sizes))  # type: ignore[arg-type]
    run.sampler = Few(run.envs, tasks)
    run.steps = -(-visits * tasks * len(run.envs) // GROUPS)
    return run


def trained(run: Run, root: Path) -> tuple[list[Group], Path]:
    """What a run's groups were, in order, and the folder of its last weights."""
    launch(run, root, "run")
    folder = RunFolder(root / "run")
    ledger = Ledger(folder.ledger, read_only=True)
    groups = list(ledger.history())
    ledger.close()
    return groups, checkpoint.listed(folder.checkpoints)[-1]


async def asked(run: Run, model: Path, tasks: int, rollouts: int) -> Doubles:
    """The share of right ones among many rollouts of each task of each environment: [W * N]."""
    run.engine.open(model)
    policy = Policy.load(model, run.engine, run.sampling, run.context)
    evaluation = replace(run.evaluation, rollouts=rollouts)
    scorer = Scorer(evaluation.rewards)
    shares: list[float] = []
    for env in run.envs:
        those = [env.task(index) for index in range(tasks)]
        (score,) = await evaluate([(env, those)], evaluation, policy, scorer, run.seed + 1000)
        shares += [right / count for right, count in zip(score.right, score.counted, strict=True)]
    await scorer.close()
    return np.array(shares)


def predicted(groups: list[Group], tasks: list[Task], step: int) -> dict[str, Doubles]:
    """What each pass-rate estimator says of all tasks after it saw all groups, as they came."""
    found = {}
    for name, kind in ESTIMATORS.items():
        estimator = kind()
        for group in groups:
            estimator.predict([group.task], group.version)
            estimator.observe(group)
        found[name] = estimator.predict(tasks, step)[0].astype(np.float64)
    return found


def metrics(means: Doubles, truth: Doubles) -> Doubles:
    """Squared error, Brier score and rank correlation."""
    error = float(np.square(means - truth).mean())
    return np.array([error, error + float((truth * (1 - truth)).mean()), rank_correlation(means, truth)])


def measure(seeds: int, tasks: int = TASKS, visits: int = VISITS, oracle: int = ORACLE) -> dict[str, Any]:
    found = [of_seed(seed, tasks, visits, oracle) for seed in range(seeds)]
    return {"seeds": seeds, "tasks": tasks, "visits": visits, "oracle": oracle, **summed(found)}


def of_seed(seed: int, tasks: int, visits: int, oracle: int) -> tuple[dict[str, Doubles], Doubles]:
    """Figures of each pass-rate estimator, and the true shares [W * N]."""
    run = run_of(seed, tasks, visits)
    with tempfile.TemporaryDirectory() as root:
        groups, model = trained(run, Path(root))
        truth = asyncio.run(asked(run_of(seed, tasks, visits), model, tasks, oracle))
    everyone = [env.task(index) for env in run.envs for index in range(tasks)]
    return {name: metrics(means, truth) for name, means in predicted(groups, everyone, run.steps).items()}, truth


def summed(found: list[tuple[dict[str, Doubles], Doubles]]) -> dict[str, Any]:
    """Means over seeds."""
    rows = []
    for name in ESTIMATORS:
        error, brier, correlation = np.mean([each[name] for each, _ in found], axis=0).tolist()
        rows.append({"estimator": name, "rmse": error**0.5, "brier": brier, "rank_correlation": correlation})
    errors = {row["estimator"]: row["rmse"] for row in rows}
    names = ENV.split("+")
    shares = np.mean([truth.reshape(len(names), -1).mean(1) for _, truth in found], axis=0).tolist()
    ratio = errors["offsets"] / errors["last seen"]
    return {"ratio": ratio, "limit": 2 / 3, "shares": dict(zip(names, shares, strict=True)), "rows": rows}


def table(found: dict[str, Any]) -> str:
    lines = ["| pass-rate estimator | RMSE | Brier | rank correlation |", "|---|---|---|---|"]
    for row in found["rows"]:
        told = " | ".join(f"{row[name]:.3f}" for name in ("rmse", "brier", "rank_correlation"))
        lines.append(f"| {row['estimator']} | {told} |")
    shares = ", ".join(f"{name} {share:.2f}" for name, share in found["shares"].items())
    lines.append(f"solved at the end: {shares}")
    lines.append(f"offsets / last seen {found['ratio']:.2f}, wanted at most {found['limit']:.2f}")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> None:
    from machine import measure_seeds

    measure_seeds(__doc__, 3, measure, table, words)


if __name__ == "__main__":
    main()
