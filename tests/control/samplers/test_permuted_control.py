"""The negative control of curricula: another task in place of each that was chosen, evidence under its true name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from strop.capabilities import Observes, inside
from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.permuted_control import Permuted, circle
from strop.control.samplers.support.bandit_arms import BanditArms
from strop.control.samplers.support.task_pool import Pool
from strop.errors import ConfigurationError
from strop.roles import Environment, Episode, PassRateEstimator, Sampler
from strop.types import Group, Message, Task


@dataclass(frozen=True)
class Numbered(Environment):
    """An environment whose tasks are their index; `count` of them, or no end."""

    name: str
    level: int = 0
    count: int | None = None

    def task(self, index: int, heldout: bool = False) -> Task:
        return Task((Message("user", f"{heldout}"),), str(index), self.name, self.level)

    def num_tasks(self, heldout: bool = False) -> int | None:
        return self.count

    def episode(self) -> Episode:
        raise NotImplementedError

    def check(self, task: Task, completion: str) -> float:
        return float(completion == task.answer)


@dataclass
class Always(Sampler):
    """The places or environments it is told, in this order, and all that it was shown."""

    envs: tuple[Environment, ...]
    places: tuple[int, ...]
    tasks: int = 0
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = list(self.places)
        self.pool, self.shelves = Pool(self.envs, max(self.tasks, 1)), BanditArms(self.envs)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        place = self.left.pop(0)
        return self.pool.task(place) if self.tasks else self.shelves.take(place)

    def observe(self, group: Group) -> None:
        self.seen.append(_named(group.task))


def _named(task: Task) -> str:
    return f"{task.source}{task.answer}"


ENDLESS = (Numbered("a"), Numbered("b"), Numbered("c"))


def test_a_circle_moves_everything_and_loses_nothing() -> None:
    for count in (2, 3, 7, 50):
        for seed in range(5):
            others = circle(count, seed)
            assert sorted(others) == list(range(count))
            place, steps = others[0], 1
            while place != 0:
                place, steps = others[place], steps + 1
            assert steps == count  # one circle: so nothing stands for itself
    assert circle(50, 0) != circle(50, 1)


def test_another_env_stands_for_each_that_was_chosen_in_its_own_order() -> None:
    others = circle(3, 4)
    sampler = Permuted(Always(ENDLESS, (0, 0, 2, 1, 0)), ENDLESS, seed=4)
    chosen = [_named(sampler.next(0, Counts())) for _ in range(5)]
    first, second, third = ("abc"[others[arm]] for arm in range(3))
    assert chosen == [f"{first}0", f"{first}1", f"{third}0", f"{second}0", f"{first}2"]


def test_another_task_of_the_pool_stands_for_each_across_envs() -> None:
    envs = (Numbered("a", count=3), Numbered("b"))  # places 0 to 2, then 3 to 6
    names = ["a0", "a1", "a2", "b0", "b1", "b2", "b3"]
    sampler = Permuted(Always(envs, (0, 1, 2, 3, 4, 5, 6, 0), tasks=4), envs, tasks=4, seed=1)
    chosen = [_named(sampler.next(0, Counts())) for _ in range(8)]
    assert chosen == [names[place] for place in (*circle(7, 1), circle(7, 1)[0])]


def test_evidence_reaches_the_inner_one_once_and_under_its_true_name() -> None:
    sampler = Permuted(inner := Always(ENDLESS, (0,)), ENDLESS)
    tried = sampler.next(0, Counts())
    for part in inside((sampler,), Observes):
        part.observe(Group(0, tried, []))
    assert inner.seen == [_named(tried)] and tried.source != "a"


def test_a_task_that_was_written_meanwhile_stays() -> None:
    written = Task((Message("user", "new"),), "1", "elsewhere")

    @dataclass
    class Written(Sampler):
        def next(self, step: int, estimator: PassRateEstimator) -> Task:
            return written

    assert Permuted(Written(), ENDLESS).next(0, Counts()) is written
    assert Permuted(Written(), ENDLESS, tasks=4).next(0, Counts()) is written


def test_goes_on_where_it_was() -> None:
    first = Permuted(Always(ENDLESS, (0, 1, 0)), ENDLESS)
    before = [first.next(0, Counts()) for _ in range(2)]
    second = Permuted(Always(ENDLESS, (0,)), ENDLESS)
    second.restore(json.loads(json.dumps(first.state())))
    after = second.next(0, Counts())
    assert after == first.next(0, Counts()) and after not in before


def test_refuses_what_cannot_be_exchanged() -> None:
    with pytest.raises(ConfigurationError, match="got 1 environment: give tasks"):
        Permuted(Always(ENDLESS[:1], ()), ENDLESS[:1])
    with pytest.raises(ConfigurationError, match="got 1 task"):
        Permuted(Always(ENDLESS[:1], ()), ENDLESS[:1], tasks=1)
