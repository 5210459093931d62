"""Asynchronous against synchronous on 64 engines, with strop's own scheduling code on a virtual clock.

    python benchmarks/virtual_cluster.py [--json] [--lag 4] [--steps 12]

Only durations are simulated: each of an engine's 32 rows writes 40 tokens/s; lengths are log-normal (median 4,096
tokens, sigma 1) cut at 32,768; training takes 6,000 tokens/s per device. Synchronous training has all 64 devices for
both phases; asynchronous training gives three quarters to generation and a quarter to training, as AReaL does.
Pipeline, admission, buffer and ledger are the real ones. The `ratio` is steps per second, asynchronous over
synchronous.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import heapq
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from strop.backends import Completion, Stop, WeightVersion
from strop.control.admission.bounded_lag import BoundedLag
from strop.control.budgets.fixed import Fixed
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.filter.scoring import Scorer
from strop.generate.policy import Policy
from strop.models.loading.model_names import POCKET
from strop.pipeline import train
from strop.roles import Engine, Trainer
from strop.run import Run
from strop.run_state import Flow, Progress
from strop.storage.ledger.ledger import Ledger
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce
from strop.training.requirements import Need, PolicyStatistic
from strop.types import Group, IntArray, Metrics, Sampling
from tests.clock import VirtualLoop

DEVICES, ROWS, SPEED, TRAIN_SPEED = 64, 32, 40.0, 6_000.0
MEDIAN, SIGMA, LONGEST = 4_096, 1.0, 32_768
GROUPS, ROLLOUTS = 128, 16
SCALE = 128  # virtual tokens per token that is really passed along


def length_of(key: int) -> int:
    """Log-normal by the rollout's key: the same rollout has the same length whatever the schedule."""
    digest = hashlib.sha256(str(key).encode()).digest()
    one, two = (int.from_bytes(digest[i : i + 8], "big") / 2**64 for i in (0, 8))
    normal = math.sqrt(-2 * math.log(one or 1e-12)) * math.cos(2 * math.pi * two)
    return int(min(MEDIAN * math.exp(SIGMA * normal), LONGEST))


@dataclass
class VirtualEngines(Engine):
    """`count` engines of ROWS rows each, as one pool of places; a row writes at a constant speed."""

    has_weights: ClassVar[bool] = False  # so nobody checks its logprobs

    count: int
    version: int = 0
    busy: float = 0.0  # row-seconds
    free: int = field(init=False)
    queue: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)
    arrivals: int = 0

    def __post_init__(self) -> None:
        self.free = self.count * ROWS

    def open(self, model: Path) -> None: ...
    def forget(self) -> None: ...
    def abort(self, key: int) -> None: ...

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        if self.free:
            self.free -= 1
        else:
            place = asyncio.get_running_loop().create_future()
            heapq.heappush(self.queue, (self.arrivals, place))
            self.arrivals += 1
            await place
        began, length = self.version, length_of(key)
        await asyncio.sleep(length / SPEED)
        self.busy += length / SPEED
        if self.queue:
            heapq.heappop(self.queue)[1].set_result(None)
        else:
            self.free += 1
        size = max(length // SCALE, 1)
        versions = np.full(size, began)
        return Completion(np.ones(size, np.int64), np.zeros(size, np.float32), versions, Stop.STOP)

    async def load(self, version: WeightVersion) -> str:
        self.version = version.step
        return version.fingerprint


@dataclass
class VirtualTrainer(Trainer):
    """Moves nothing; its time is taken by the executor it is called through."""

    max_tokens: int = 1 << 30

    def open(self, model: Path, seed: int) -> None: ...
    def policy_statistic(self, groups: Any, needs: frozenset[PolicyStatistic]) -> None: ...
    def annotate(self, batches: Any, needs: frozenset[Need]) -> None: ...
    def step(self, batches: Any, objective: Any) -> Metrics:
        return {"loss": 0.0}

    def weights(self) -> dict[str, Any]:
        return {}

    def save(self, folder: Path) -> None: ...
    def resume(self, folder: Path) -> None: ...


@dataclass
class TakesTime(Executor):
    """Hands out the result of a training step when its virtual seconds are over."""

    devices: int
    busy: float = 0.0

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **more: Any) -> Future[Any]:
        groups: list[Group] = arguments[1]
        tokens = SCALE * sum(t.num_tokens for group in groups for t in group.rollouts)
        seconds = tokens / (TRAIN_SPEED * self.devices)
        self.busy += seconds
        future: Future[Any] = Future()
        result = work(*arguments, **more)
        asyncio.get_running_loop().call_later(seconds, future.set_result, result)
        return future


@dataclass
class Log:
    rows: list[Metrics] = field(default_factory=list)
    at: list[float] = field(default_factory=list)

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        self.rows.append(metrics)
        self.at.append(asyncio.get_running_loop().time())


def simulate(lag: int, steps: int, engines: int, trainers: int) -> dict[str, float]:
    """Seconds per step once warm, idle shares and staleness."""
    envs = (Arithmetic(4),)
    engine, executor, log = VirtualEngines(engines), TakesTime(trainers), Log()
    run = Run(
        envs=envs, sampler=Uniform(envs), advantage=Constant(), losses=(Reinforce(),), steps=steps,
        groups_per_step=GROUPS, budget=Fixed(ROLLOUTS), admission=BoundedLag(lag), engine=engine,
        trainer=VirtualTrainer(), checkpoint_every=1 << 30, sampling=Sampling(max_tokens=400),
    )  # fmt: skip
    run.evaluation = type(run.evaluation)(every=0, tasks=0)

    async def nothing() -> Metrics:
        return {}

    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        run.channel.connect(run.trainer, [engine])
        ledger = Ledger(Path(folder) / "ledger.db")
        policy = Policy.load(POCKET, engine, run.sampling, 512)
        flow = Flow(run, policy, Scorer(run.rewards), ledger, Progress(), log, lambda step: None, nothing, executor)
        runner.run(train(flow))
        total = runner.get_loop().time()
        problems = ledger.violations()
        ledger.close()
    assert not problems, problems
    warm = max(steps // 3, 1)
    return {
        "lag": lag,
        "engines": engines,
        "training_devices": trainers,
        "seconds_per_step": (log.at[-1] - log.at[warm - 1]) / (steps - warm),
        "rows_idle_share": 1 - engine.busy / (total * engines * ROWS),
        "training_idle_share": 1 - executor.busy / total,
        "lag_max": max(row["lag_max"] for row in log.rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--lag", type=int, default=4)
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()
    synchronous = simulate(0, arguments.steps, DEVICES, DEVICES)
    asynchronous = simulate(arguments.lag, arguments.steps, DEVICES * 3 // 4, DEVICES // 4)
    lengths = sorted(length_of(i) for i in range(20_000))
    result = {
        "benchmark": "virtual_cluster",
        "ratio": synchronous["seconds_per_step"] / asynchronous["seconds_per_step"],
        "synchronous": synchronous,
        "asynchronous": asynchronous,
        "lengths": {"median": statistics.median(lengths), "mean": statistics.mean(lengths), "longest": lengths[-1]},
    }
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"{'':24}{'synchronous':>14}{'asynchronous':>14}")
    for name in synchronous:
        print(f"{name:24}{synchronous[name]:14.3g}{asynchronous[name]:14.3g}")
    print(f"ratio {result['ratio']:.2f}")


if __name__ == "__main__":
    main()
