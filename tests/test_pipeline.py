"""The flow with scripted completions on a virtual clock: order, staleness, failures; nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from strop.backends import WeightVersion
from strop.control.admission.bounded_lag import BoundedLag
from strop.control.admission.support.admission_state import Standing
from strop.control.budgets.fixed import Fixed
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.single_turn import SingleTurn
from strop.errors import DeliveryError, RewardError, StarvationError
from strop.evaluation import Evaluation
from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.scoring import Scorer
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy, rollout_key
from strop.observe.metrics.step_timer import BusyClock
from strop.pipeline import train
from strop.recipes.rollout.april import OverProvision
from strop.recipes.system.ring_1t import TokenBudget
from strop.roles import Admission, Environment, PassRateEstimator, Reward, Sampler
from strop.run import Run
from strop.run_state import Flow, Progress
from strop.storage.ledger.ledger import Ledger
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.reinforce import Reinforce
from strop.types import ZERO_TO_ONE, Group, Message, Metrics, Observation, Outcome, Rollout, ScoreRange, Task
from tests.clock import AtOnce, run_virtually


@dataclass
class Recorder:
    rows: list[Metrics] = field(default_factory=list)
    times: list[Metrics] = field(default_factory=list)

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        self.rows.append({"step": step, **metrics})
        self.times.append(timing)


def completion(prompt: str, key: int) -> str:
    """Right or wrong by the key, and of very different lengths."""
    return "1" * (1 + key % 7 * (key % 3)) + str(key % 5)


def make_run(steps: int = 6, lag: int = 0, **parts: Any) -> Run:
    envs: tuple[Environment, ...] = (Arithmetic(1),)
    plain: dict[str, Any] = {
        "admission": BoundedLag(lag),
        "engine": Scripted(completion, seconds_per_token=1.0),
        "budget": Fixed(3),
        "evaluation": Evaluation(every=0),
    }
    settings = {"envs": envs, "sampler": Uniform(envs)} | plain | parts
    return Run(
        advantage=GroupMean(), losses=(Reinforce(),), steps=steps, groups_per_step=4, checkpoint_every=1000, **settings
    )


@contextmanager
def opened(run: Run, model: Path, ledger: Path) -> Iterator[tuple[Flow, Recorder]]:
    run.trainer.open(model, 0)
    run.engine.open(model)
    run.channel.connect(run.trainer, [run.engine])
    recorder = Recorder()

    async def nothing() -> Metrics:
        return {}

    book = Ledger(ledger)
    policy = Policy.load(model, run.engine, run.sampling, 96)
    scorer = Scorer(run.rewards)
    yield Flow(run, policy, scorer, book, Progress(), recorder, lambda step: None, nothing, AtOnce()), recorder
    book.close()


@pytest.mark.parametrize("lag", [0, 1, 4, 16])
def test_nothing_is_trained_beyond_the_lag(model: Path, tmp_path: Path, lag: int) -> None:
    run = make_run(steps=20, lag=lag)
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert max(row["lag_max"] for row in recorder.rows) <= lag
        starts = flow.ledger._rows(
            "SELECT MAX(t.step - 1 - g.version) FROM trainings t JOIN rollouts a ON a.id = t.rollout "
            "JOIN groups g ON g.number = a.number"
        )
        assert starts[0][0] <= lag
        if lag >= 1:
            assert starts[0][0] >= 1, "generation never ran ahead: the bound was not tested"


@pytest.mark.parametrize("lag", [0, 2])
def test_nothing_is_lost_and_nothing_is_trained_twice(model: Path, tmp_path: Path, lag: int) -> None:
    run = make_run(lag=lag)
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        ledger = flow.ledger
        assert ledger.violations() == [] and ledger.trained_more_than_once() == 0
        assert ledger.counts()["trained"] == 6 * 4 * 3
        trained = [row[0] for row in ledger._rows("SELECT number FROM groups WHERE fate='trained' ORDER BY number")]
        assert len(trained) == 24
        if lag == 0:
            assert trained == list(range(24)) and not ledger.running()
        assert recorder.rows[-1]["tokens_trained"] <= recorder.rows[-1]["tokens_generated"]


def test_running_ahead_takes_less_time(model: Path, tmp_path: Path) -> None:
    """With lag 0 each step waits for its longest rollout; running ahead fills that time. Training takes none here."""
    seconds = {}
    for lag in (0, 4):
        run = make_run(steps=12, lag=lag)
        with opened(run, model, tmp_path / f"{lag}.db") as (flow, _):
            seconds[lag] = run_virtually(train(flow))[1]
    assert seconds[4] < 0.6 * seconds[0]


class Slow(Reward):
    """Takes 5 s for each group."""

    is_inline = True

    async def __call__(self, group: Group) -> list[float]:
        await asyncio.sleep(5.0)
        return [float(len(t.completion) > 6) for t in group.rollouts]


def test_a_step_says_whether_it_waited_for_engines_or_for_others(model: Path, tmp_path: Path) -> None:
    """One group of one rollout a step: its tokens, a second each, then 5 s of a reward; training takes none here."""
    run = replace(make_run(budget=Fixed(1), rewards=(Slow(),)), groups_per_step=1)
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        virtual = BusyClock(lambda: asyncio.get_running_loop().time())
        flow = replace(flow, policy=replace(flow.policy, busy=virtual))
        run_virtually(train(flow))
    tokens = [row["tokens_generated"] for row in recorder.rows]
    for before, after, told in zip([0.0, *tokens], tokens, recorder.times, strict=False):
        assert told["engine_seconds"] == pytest.approx(after - before) and told["host_seconds"] == pytest.approx(5.0)
        assert told["seconds"] == told["generate_seconds"] == pytest.approx(after - before + 5.0)


@dataclass
class Hurried(Scripted):
    """Notes who was asked to hurry, and who was running then."""

    asked: list[set[int]] = field(default_factory=list)

    def hurry(self, keys: list[int]) -> None:
        self.asked.append(set(keys))


def test_a_step_that_waits_for_old_groups_lets_them_go_first(model: Path, tmp_path: Path) -> None:
    """Only then: without lag every group is waited for, and nobody is hurried."""
    for lag in (0, 1):
        engine = Hurried(completion, seconds_per_token=1.0)
        with opened(make_run(steps=12, lag=lag, engine=engine), model, tmp_path / f"{lag}.db") as (flow, _):
            run_virtually(train(flow))
            keys = {rollout_key(0, f"{number}/{index}") for number in range(60) for index in range(3)}
        assert bool(engine.asked) == (lag > 0)
        assert all(asked and len(asked) % 3 == 0 and asked <= keys for asked in engine.asked)  # whole groups


@pytest.mark.parametrize("admission", [OverProvision(2.0, lag=3), TokenBudget(60, pool=6, lag=4)])
def test_partial_rollouts_survive_an_update_and_none_is_lost(
    model: Path, tmp_path: Path, admission: OverProvision | TokenBudget
) -> None:
    """What was in flight when a step began is trained later, with the versions behind its tokens, or still running."""
    run = make_run(steps=12, admission=admission)
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        _, seconds = run_virtually(train(flow))
        ledger = flow.ledger
        assert ledger.violations() == [] and ledger.trained_more_than_once() == 0
        assert 0 < max(row["lag_max"] for row in recorder.rows) <= admission.lag
        (started,) = ledger._rows("SELECT COUNT(*) FROM groups")[0]
        fates = dict(ledger._rows("SELECT fate, COUNT(*) FROM groups GROUP BY fate"))
        assert sum(fates.values()) == started and set(fates) <= {"trained", "waiting", "running"}
        mixed = [t for t in _trained(ledger) if len(set(t.turns[0].versions.tolist())) > 1]
        assert mixed, "no rollout crossed an update"
    synchronous = make_run(steps=12)
    with opened(synchronous, model, tmp_path / "synchronous.db") as (flow, _):
        assert seconds < run_virtually(train(flow))[1]


def _trained(ledger: Ledger) -> list[Rollout]:
    numbers = ledger._rows("SELECT number FROM groups WHERE fate='trained'")
    return [rollout for (number,) in numbers for rollout in ledger.group(number).rollouts]


def test_a_token_budget_ends_a_step_when_its_tokens_are_spent(model: Path, tmp_path: Path) -> None:
    run = make_run(steps=8, admission=TokenBudget(60, pool=6))
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        run_virtually(train(flow))
        steps = flow.ledger._rows("SELECT t.step, SUM(a.tokens) FROM trainings t JOIN rollouts a ON a.id=t.rollout "
                                  "GROUP BY t.step")  # fmt: skip
        assert len(steps) == 8 and all(tokens >= 60 for _, tokens in steps)


def test_dropped_groups_are_replaced_and_recorded_with_their_reason(model: Path, tmp_path: Path) -> None:
    run = make_run(gates=(ZeroVariance(),), rewards=(ByKey(),))
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        counts = flow.ledger.counts()
        assert counts["trained"] == 6 * 4 * 3 and counts["gated"] > 0
        assert flow.ledger.violations() == []
        (reasons,) = flow.ledger._rows("SELECT COUNT(*) FROM groups WHERE fate='gated' AND reason=''")
        assert reasons[0] == 0
        assert sum(row["dropped_groups"] for row in recorder.rows) * 3 == counts["gated"]


@dataclass(frozen=True)
class ByKey(Reward):
    """Differs within about half of the groups."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    weight: float = 1.0
    is_inline = True

    def __call__(self, group: Any) -> list[float]:
        return [float(len(t.completion) > 6 and group.number % 2) for t in group.rollouts]


@dataclass(frozen=True)
class Same(Reward):
    value: float = 1.0
    weight: float = 1.0
    is_inline = True
    pays_blindly = True
    grades = ZERO_TO_ONE

    def __call__(self, group: Any) -> list[float]:
        return [self.value] * len(group.rollouts)


@pytest.mark.parametrize(
    ("reward", "counts", "remedy"),
    [(1, r"right in 20\d of them and wrong in 0", "harder"), (0, r"right in 0 of them and wrong in 20\d", "easier")],
)
def test_starvation_says_which_gate_dropped_what(
    model: Path, tmp_path: Path, reward: int, counts: str, remedy: str
) -> None:
    """Everything is solved, or nothing: the run ends after 50 draws' worth of groups."""
    run = make_run(gates=(ZeroVariance(),), rewards=(Same(reward),))
    dropped = rf"20\d groups were dropped meanwhile: ZeroVariance 20\d \(20\dx all rewards are {reward}\)"
    told = rf"needs 4 groups and has 0; {dropped}.* {counts}: the run needs {remedy} tasks"
    with (
        opened(run, model, tmp_path / "ledger.db") as (flow, _),
        pytest.raises(StarvationError, match=told),
    ):
        run_virtually(train(flow))


@dataclass(frozen=True)
class Patient(Arithmetic):
    """An environment that never ends a rollout by itself."""

    def episode(self) -> SingleTurn:
        return Asking(self)


class Asking(SingleTurn):
    async def step(self, completion: Message) -> Observation:
        return Observation((Message("user", "and?"),), done=False, reward=0.0)


class OnlyThreeTurns(Fixed):
    def turns(self, task: Task) -> int:
        return 3


def test_a_budget_may_limit_turns(model: Path, tmp_path: Path) -> None:
    envs = (Patient(1),)
    run = make_run(2, envs=envs, sampler=Uniform(envs), engine=Scripted(lambda *_: "1"), budget=OnlyThreeTurns(2))
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        run_virtually(train(flow))
        rollouts = _trained(flow.ledger)
        assert len(rollouts) == 16 and {len(rollout.turns) for rollout in rollouts} == {3}
        assert {rollout.outcome for rollout in rollouts} == {Outcome.TRUNCATED}


@dataclass
class Broken(SingleTurn):
    """An environment that crashes for some tasks."""

    crash_every: int = 3

    async def step(self, completion: Message) -> Observation:
        if int(self.task.answer) % self.crash_every == 0:
            raise ConnectionError("the sandbox is gone")
        return await super().step(completion)


@dataclass(frozen=True)
class BrokenEnvironment(Arithmetic):
    crash_every: int = 3

    def episode(self) -> SingleTurn:
        return Broken(self, crash_every=self.crash_every)


def test_what_the_env_breaks_is_failed_and_never_trained(model: Path, tmp_path: Path) -> None:
    envs = (BrokenEnvironment(1),)
    run = make_run(envs=envs, sampler=Uniform(envs), max_failed_share=0.9)
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        run_virtually(train(flow))
        counts = flow.ledger.counts()
        assert counts["failed"] > 0 and counts["trained"] == 6 * 4 * 3
        rewards = flow.ledger._rows("SELECT DISTINCT reward, error FROM rollouts WHERE fate='failed'")
        assert rewards == [(None, "environment arithmetic: ConnectionError: the sandbox is gone")]
        assert flow.ledger.violations() == []


def test_a_env_that_mostly_fails_stops_the_run(model: Path, tmp_path: Path) -> None:
    envs = (BrokenEnvironment(1, crash_every=1),)
    run = make_run(envs=envs, sampler=Uniform(envs))
    with (
        opened(run, model, tmp_path / "ledger.db") as (flow, _),
        pytest.raises(RewardError, match=r"100% of the last .* rollouts failed .*the sandbox is gone"),
    ):
        run_virtually(train(flow))


@dataclass
class Liar(Scripted):
    """An engine that ignores the third publish."""

    async def load(self, version: WeightVersion) -> str:
        return await super().load(version if version.step < 3 else replace(version, fingerprint="old"))


def test_an_engine_with_other_weights_stops_the_run(model: Path, tmp_path: Path) -> None:
    run = make_run(engine=Liar(completion))
    with (
        opened(run, model, tmp_path / "ledger.db") as (flow, recorder),
        pytest.raises(DeliveryError, match=r"engine 0 \(Liar\) samples from weights old after step 3"),
    ):
        run_virtually(train(flow))
    assert [row["step"] for row in recorder.rows] == [1, 2]


def test_an_error_in_any_worker_ends_the_run(model: Path, tmp_path: Path) -> None:
    def broken(prompt: str, key: int) -> str:
        raise RuntimeError("engine lost")

    run = make_run(engine=Scripted(broken))
    with opened(run, model, tmp_path / "ledger.db") as (flow, _), pytest.raises(RuntimeError, match="engine lost"):
        asyncio.run(train(flow))


def test_a_budget_of_tokens_trains_without_lag(model: Path, tmp_path: Path) -> None:
    run = make_run(steps=5, admission=TokenBudget(60, pool=3, lag=0))
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert [row["step"] for row in recorder.rows] == [1, 2, 3, 4, 5]
        assert max(row["lag_max"] for row in recorder.rows) == 0
        assert not flow.ledger.running() and flow.ledger.violations() == []


@dataclass
class NeverDraws(Admission):
    """Lets anything start and trains on nothing."""

    lag: int = 0

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool:
        return running < 4

    def batch_size(self, standing: Standing) -> int:
        return 0


def test_a_run_told_to_stop_ends_where_no_draw_is_due(model: Path, tmp_path: Path) -> None:
    """Without being told twice, as soon as more groups wait than any step could take."""
    run = make_run(admission=NeverDraws())
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):

        async def told_to_stop() -> None:
            training = asyncio.create_task(train(flow))
            await flow.progress.until(lambda: len(run.buffer) >= 20)
            flow.progress.is_stopping = True
            await asyncio.wait_for(training, 1000)

        run_virtually(told_to_stop())
        assert recorder.rows == [] and flow.ledger.counts().keys() == {"waiting"}


@dataclass
class Walked(Sampler):
    """Counts how often somebody walks through its fields."""

    inner: Uniform
    passed: int = 0
    walks: int = field(default=0, init=False)

    def __getattribute__(self, name: str) -> Any:
        if name == "passed":
            self.walks += 1
        return super().__getattribute__(name)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self.inner.next(step, estimator)


def test_those_who_learn_are_looked_for_once(model: Path, tmp_path: Path) -> None:
    walks = []
    for steps in (1, 5):
        sampler = Walked(Uniform((Arithmetic(1),)))
        with opened(make_run(steps, sampler=sampler), model, tmp_path / f"{steps}.db") as (flow, _):
            run_virtually(train(flow))
        walks.append(sampler.walks)
    assert walks[0] == walks[1] > 0, "the whole run is walked, however many steps it has"


@dataclass(frozen=True)
class Learns(Fixed):
    """A budget that remembers what it was shown."""

    shown: list[int] = field(default_factory=list)

    def observe(self, group: Group) -> None:
        self.shown.append(group.number)


def test_a_budget_is_shown_every_group_kept_or_not(model: Path, tmp_path: Path) -> None:
    budget = Learns(3)
    run = make_run(steps=3, budget=budget, gates=(ZeroVariance(),))
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        run_virtually(train(flow))
        finished = flow.ledger._rows("SELECT number FROM groups WHERE fate != 'running' ORDER BY number")
        assert sorted(budget.shown) == [number for (number,) in finished]
        assert "gated" in flow.ledger.counts()
