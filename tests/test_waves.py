"""Waves, families, order and lineage: what a group may be beside independent siblings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pytest

from strop.capabilities import generated
from strop.concurrency import together
from strop.control.admission.bounded_lag import BoundedLag
from strop.control.budgets.fixed import Fixed
from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError, StarvationError
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import rollout_key
from strop.generate.turn_ops import as_prefix, cut
from strop.pipeline import train
from strop.roles import Budget, Gate, PassRateEstimator, Player, Reward, Sampler, Strategy, TaskGenerator
from strop.training.comparison_groups import comparison_groups, optimizer_steps
from strop.types import ZERO_TO_ONE, GateResult, Group, Origin, Outcome, Rollout, ScoreRange, Start, Task
from tests.building import make_group
from tests.clock import run_virtually
from tests.test_pipeline import completion, make_run, opened


@dataclass
class UntilThree(Budget):
    """Two rollouts, then one more after each wave that brought fewer than three."""

    asked: list[list[float]] = field(default_factory=list)

    def rollouts(self, group: Group) -> int:
        self.asked.append([t.reward for t in group.rollouts])
        return 2 if not group.rollouts else int(len(group.rollouts) < 3)


@dataclass
class ByLength(Reward):
    """Counts how often it is asked about each rollout."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    asked: list[str] = field(default_factory=list)
    is_inline = True

    def __call__(self, group: Group) -> list[float]:
        self.asked += [t.id for t in group.rollouts]
        return [1.0 + len(t.completion) for t in group.rollouts]


def test_a_budget_sees_what_was_scored_before_it_gives_more(model: Path, tmp_path: Path) -> None:
    budget, reward = UntilThree(), ByLength()
    run = make_run(steps=1, budget=budget, rewards=(reward,))
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        run_virtually(train(flow))
        groups = flow.ledger.trained_groups(1)
    assert [len(group.rollouts) for group in groups] == [3] * 4
    assert [len(seen) for seen in budget.asked].count(3) == 4, "asked until it says 0"
    assert all(value > 0 for seen in budget.asked for value in seen), "every wave is scored before the next"
    assert sorted(reward.asked) == sorted(t.id for group in groups for t in group.rollouts), "each rollout once"


@dataclass(frozen=True)
class Forks(Strategy):
    """One root, thrown away, and for each start a branch from its first token."""

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        root = await play(play.another())
        shared = as_prefix(cut(root.turns, 1))
        return await together(play(replace(start, turns=shared, parent=root.id)) for start in starts)


def test_what_was_made_and_not_brought_has_a_row_and_its_tokens_count(model: Path, tmp_path: Path) -> None:
    run = make_run(steps=2, strategy=Forks(), rewards=(ByLength(),), engine=Scripted(lambda prompt, key: "12345"))
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        rows = flow.ledger._rows("SELECT id, parent, outcome, fate, place, tokens FROM rollouts ORDER BY number, id")
        tokens = sum(row[-1] for row in rows)
        made = flow.ledger.counts()
    roots = [row for row in rows if row[2] == "pruned"]
    assert made == {"gated": 8, "trained": 24} and len(roots) == 8
    assert all(row[3] == "gated" and row[4] is None for row in roots)
    assert all(row[1] == f"{row[0].split('/')[0]}/3" for row in rows if row[3] == "trained"), "the parent is named"
    assert recorder.rows[-1]["tokens_generated"] == tokens == (8 + 24) * 6, "what branches share is counted once"
    assert generated(run.engine) in (None, tokens)


@dataclass(frozen=True)
class Rarely(Budget):
    """Rollouts of one task in so many; 0: at none."""

    every: int = 0

    def rollouts(self, group: Group) -> int:
        return int(bool(self.every) and group.number % self.every == 0 and not group.rollouts)


def test_a_budget_of_nothing_is_told(model: Path, tmp_path: Path) -> None:
    told = r"needs 4 groups and has 0; the last 20\d groups were left out on purpose \(20\dx it was given no rollout\)"
    with opened(make_run(budget=Rarely()), model, tmp_path / "ledger.db") as (flow, _):
        with pytest.raises(StarvationError, match=told):
            run_virtually(train(flow))
        assert flow.ledger.violations() == []


@dataclass(frozen=True)
class Probes(Gate):
    """Keeps one group in 100; the others were only a look."""

    def __call__(self, group: Group) -> GateResult:
        return GateResult(group) if group.number % 100 == 0 else GateResult(None, "a probe", is_meant=True)


@dataclass(frozen=True)
class Asked(TaskGenerator):
    """Writes nothing, and remembers who was asked about."""

    numbers: list[int] = field(default_factory=list)

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        self.numbers.append(group.rollouts[0].task.level)
        return []


@pytest.mark.parametrize("is_skipped", [True, False])
def test_what_is_left_out_on_purpose_starves_nobody(model: Path, tmp_path: Path, is_skipped: bool) -> None:
    """297 groups for a step of 4, far more than gates may drop: given no rollout, or looked at and left."""
    sampler, task_generator = Listening(Uniform((Arithmetic(1),))), Asked()
    parts = {"budget": Rarely(100)} if is_skipped else {"budget": Fixed(1), "gates": (Probes(),)}
    run = make_run(steps=1, sampler=sampler, task_generator=task_generator, **parts)
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        fates = dict(flow.ledger._rows("SELECT fate, COUNT(*) FROM groups GROUP BY fate"))
    (row,) = recorder.rows
    left_out = "skipped" if is_skipped else "gated"
    assert fates["trained"] == 4 and fates[left_out] == row[f"{'skipped' if is_skipped else 'dropped'}_groups"] >= 297
    assert row["dropped_groups"] == (0 if is_skipped else fates["gated"])
    assert sampler.heard == list(range(4 + int(fates[left_out]))), "who has a price to move hears of all"
    assert len(task_generator.numbers) == (4 if is_skipped else len(sampler.heard)), (
        "of no rollout nothing can be written"
    )


@dataclass
class Listening(Sampler):
    inner: Uniform
    heard: list[int] = field(default_factory=list)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self.inner.next(step, estimator)

    def observe(self, group: Group) -> None:
        self.heard.append(group.number)


@pytest.mark.parametrize("lag", [0, 2])
def test_without_lag_whoever_learns_learns_in_the_order_of_admission(model: Path, tmp_path: Path, lag: int) -> None:
    """Lengths differ, so groups finish in another order than they began."""
    sampler = Listening(Uniform((Arithmetic(1),)))
    engine = Scripted(completion, seconds_per_token=1.0)
    run = make_run(steps=4, sampler=sampler, admission=BoundedLag(lag), engine=engine)
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        run_virtually(train(flow))
    assert (sampler.heard == sorted(sampler.heard)) == (lag == 0), "with lag, quick groups are learned from first"


class LookedThrough(dict[int, asyncio.Task[None]]):
    """Counts how many groups were looked at by those who look through all that run."""

    looks = 0

    def __iter__(self) -> Iterator[int]:
        for number in super().__iter__():
            self.looks += 1
            yield number


def test_waiting_for_ones_turn_costs_the_same_however_many_wait(model: Path, tmp_path: Path) -> None:
    """The first group is the slowest, and all others wait for it: each looks at one, not at all that are left."""
    first, groups = rollout_key(0, "0/0"), 60
    engine = Scripted(lambda prompt, key: "1" * 20 if key == first else "1", seconds_per_token=1.0)
    run = replace(make_run(steps=1, engine=engine, budget=Fixed(1)), groups_per_step=groups)
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        flow.progress.running = running = LookedThrough()
        run_virtually(train(flow))
    assert running.looks <= groups


def test_a_forecast_is_kept_with_its_group(model: Path, tmp_path: Path) -> None:
    run = make_run(steps=2, estimator=Counts())
    with opened(run, model, tmp_path / "ledger.db") as (flow, _):
        run_virtually(train(flow))
        first, second = flow.ledger.trained_groups(1), flow.ledger.trained_groups(2)
    assert all(group.predicted == (0.5, pytest.approx(1 / 12)) for group in first), "nothing is known before the first"
    assert all(group.predicted is not None and group.predicted[1] < 1 / 12 for group in second)


def test_counts_do_not_depend_on_order_and_count_only_own_rollouts() -> None:
    one, other = make_group([1.0, 0.0, 0.5, 1.0], pruned=[3]), make_group([1.0, 1.0], number=1)
    other.rollouts[1].origin = Origin.GUIDED
    there, back = Counts(), Counts()
    for group in (one, other):
        there.observe(group)
    for group in (other, one):
        back.observe(group)
    mean, variance = there.predict([one.task], 0)
    # 1 + 0 + 0.5 of one and 1 of the other: Beta(1 + 2.5, 1 + 1.5)
    assert mean[0] == pytest.approx(3.5 / 6) and variance[0] == pytest.approx(3.5 * 2.5 / (36 * 7))
    assert there.state() == back.state()
    again = Counts()
    again.restore(there.state())
    assert again.predict([one.task], 5)[0][0] == mean[0]


def test_families_are_compared_among_themselves() -> None:
    group = make_group([1.0, 0.0, 1.0, 1.0])
    for rollout, family in zip(group.rollouts, ("", "hinted", "hinted", ""), strict=True):
        rollout.comparison_group = family
    found = comparison_groups([group, make_group([1.0], number=1)])
    assert [(each.number, [t.reward for t in each.rollouts]) for each in found] == [
        (0, [1.0, 1.0]),
        (0, [0.0, 1.0]),
        (1, [1.0]),
    ]


def test_a_family_of_which_nothing_counts_is_no_step() -> None:
    group = make_group([1.0, 0.0, 0.0, 0.0], failed=[2], pruned=[3])
    for rollout in group.rollouts[2:]:
        rollout.comparison_group = "hinted"
    found = comparison_groups([group, make_group([1.0], number=1)])
    assert [(each.number, [t.id for t in each.rollouts]) for each in found] == [(0, ["0-0", "0-1"]), (1, ["1-0"])]
    assert [[each.number for each in part] for part in optimizer_steps(found, 2)] == [[0], [1]]


def test_demonstrations_alone_make_a_step_of_their_own() -> None:
    groups = [make_group([1.0, 0.0], number=number) for number in range(5)]
    for rollout in groups[1].rollouts:
        rollout.origin = Origin.TEACHER
    groups[2].rollouts[0].origin = Origin.TEACHER  # beside its siblings it is one of them
    numbers = [[group.number for group in part] for part in optimizer_steps(groups, 2)]
    assert numbers == [[0, 2], [3, 4], [1]]
    assert [[g.number for g in part] for part in optimizer_steps([groups[1]], 1)] == [[1]]


def test_envs_are_found_by_name_and_level() -> None:
    envs = (Arithmetic(1), Arithmetic(2))
    assert [env_of(envs, env.task(0)).level for env in envs] == [1, 2]
    with pytest.raises(ConfigurationError, match="is of arithmetic:3, and the environments here are arithmetic:1"):
        env_of(envs, Arithmetic(3).task(0))


def test_pruned_rollouts_are_in_no_baseline() -> None:
    group = make_group([1.0, 0.0, 0.0], pruned=[2])
    assert group.rollouts[2].outcome is Outcome.PRUNED
    assert [t.reward for t in group.scored] == [1.0, 0.0] and Fixed(3).rollouts(group) == 0
