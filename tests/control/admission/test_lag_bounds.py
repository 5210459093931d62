"""Admissions in a small environment of events: groups of very different lengths, some dropped, trained while others
run.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import pytest

from strop.control.admission.bounded_lag import BoundedLag
from strop.control.admission.support.admission_state import Standing
from strop.recipes.rollout.april import OverProvision
from strop.recipes.system.ring_1t import TokenBudget
from strop.roles import Admission


@dataclass
class Environment:
    """What the pipeline would count; one group in twenty takes thirty times as long, one in five is dropped."""

    admission: Admission
    seed: int
    training_seconds: float = 3.0
    slow: float = 0.05

    now: float = 0.0
    step: int = 0
    started: int = 0
    tokens: int = 0
    training: list[int] = field(default_factory=list)  # versions of the groups in the current step
    running: dict[int, int] = field(default_factory=dict)  # number -> version
    waiting: dict[int, int] = field(default_factory=dict)
    lags: list[int] = field(default_factory=list)  # of every trained group
    sizes: list[int] = field(default_factory=list)  # of every step
    most: list[int] = field(default_factory=list)  # groups done or in flight when each step's tokens were there
    _events: list[tuple[float, int, int, bool]] = field(default_factory=list)  # when, number (-1: a step), tokens, kept

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def go_on(self, steps: int) -> None:
        self._settle()
        while self.step < steps:
            assert self._events, f"nothing can happen any more: {self.running}, {self.waiting}, {self.tokens} tokens"
            self.now, number, tokens, is_kept = heapq.heappop(self._events)
            if number < 0:
                self.step, self.training, self.tokens = self.step + 1, [], 0
            else:
                version = self.running.pop(number)
                self.tokens += tokens
                if is_kept:
                    self.waiting[number] = version
            self._settle()

    def _settle(self) -> None:
        if not self.training:
            self._train()
        while self.admission.may_start(
            len(self.running), len(self.waiting) + len(self.training), self.step, 4, self.tokens
        ):
            self._start()
            assert len(self.running) + len(self.waiting) < 500, "admission has no bound"

    def _train(self) -> None:
        running, waiting = tuple(sorted(self.running.values())), sorted(self.waiting)
        standing = Standing(self.step, 4, running, tuple(self.waiting[each] for each in waiting), self.tokens)
        if len(self.most) == len(self.sizes) and self.tokens >= getattr(self.admission, "tokens", 0) and waiting:
            self.most.append(len(self.running) + len(self.waiting))
        if count := self.admission.batch_size(standing):
            self.training = [self.waiting.pop(number) for number in waiting[:count]]
            self.lags += [self.step - version for version in self.training]
            self.sizes.append(count)
            heapq.heappush(self._events, (self.now + self.training_seconds, -1, 0, True))

    def _start(self) -> None:
        seconds = float(self._random.exponential(1.0)) * (30 if self._random.random() < self.slow else 1)
        is_kept = bool(self._random.random() < 0.8)
        heapq.heappush(self._events, (self.now + seconds, self.started, 20 + int(5 * seconds), is_kept))
        self.running[self.started] = self.step
        self.started += 1


@pytest.mark.parametrize(
    "admission",
    [
        *(BoundedLag(lag) for lag in (1, 3)),
        *(OverProvision(surplus, lag) for surplus, lag in ((3.0, 1), (3.0, 2), (6.0, 5))),
        *(TokenBudget(100, 12, lag) for lag in (1, 2, 3)),
    ],
    ids=str,
)
def test_the_lag_reaches_its_bound_and_never_passes_it(admission: Admission) -> None:
    """Nothing is older than it may be, and nothing is waited for that is younger."""
    lags: list[int] = []
    for seed in range(3):
        env = Environment(admission, seed)
        env.go_on(80)
        lags += env.lags
    assert max(lags) == admission.lag


@pytest.mark.parametrize("admission", [BoundedLag(0), OverProvision(2.0, 0), TokenBudget(100, 6, 0)], ids=str)
def test_without_lag_steps_still_come_and_all_is_fresh(admission: Admission) -> None:
    for seed in range(3):
        env = Environment(admission, seed)
        env.go_on(30)
        assert set(env.lags) == {0}


@pytest.mark.parametrize("lag", [0, 1, 5])
def test_a_token_budget_bounds_a_step_also_where_it_waits_for_a_slow_group(lag: int) -> None:
    """No more than was done or in flight when the tokens were there."""
    for seed in range(5):
        env = Environment(TokenBudget(200, 16, lag), seed)
        env.go_on(60)
        assert len(env.sizes) == len(env.most)
        assert all(size <= most for size, most in zip(env.sizes, env.most, strict=True))
        assert max(env.sizes) <= 40


def test_a_budget_of_tokens_is_spent_before_a_step_and_the_pool_is_full_until_then() -> None:
    admission = TokenBudget(100, pool=3, lag=2)
    assert [admission.may_start(running, 5, 0, 4, 99) for running in range(5)] == [True, True, True, False, False]
    assert not admission.may_start(0, 5, 0, 4, 100)
    assert admission.may_start(0, 0, 0, 4, 100)  # all of it was dropped: more is needed
    assert admission.batch_size(Standing(3, 4, (), (3, 3), 99)) == 0
    assert admission.batch_size(Standing(3, 4, (2,), (3, 3), 100)) == 2  # trained at 4 at the earliest: 2 versions
    assert admission.batch_size(Standing(3, 4, (1,), (3, 3), 100)) == 0


def test_without_lag_a_pool_starts_together_and_not_before_all_before_it_are_done() -> None:
    """Which groups are made together then depends on no clock."""
    admission = TokenBudget(100, pool=3, lag=0)
    assert [admission.may_start(running, 0, 0, 4, 0) for running in range(4)] == [True, True, True, False]
    assert not admission.may_start(2, 1, 0, 4, 30)  # one is done: its place waits
    assert admission.may_start(0, 3, 0, 4, 90) and not admission.may_start(0, 3, 0, 4, 100)
