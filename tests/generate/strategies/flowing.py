"""A small run with scripted replies, and what must hold in it whichever attempts a strategy makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from strop.backends import Completion, Engine
from strop.capabilities import Meets, inside
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.single_turn import SingleTurn
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.pipeline import train
from strop.roles import Environment, Strategy, World
from strop.training.pack import pack
from strop.training.reductions.token_mean import TokenMean
from strop.types import Group, IntArray, Message, Metrics, Observation, Sampling, Task, Trajectory
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened


@dataclass
class Counting(Scripted):
    """Notes how many tokens it sampled."""

    sampled: int = 0

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        written = await super().sample(prompt, sampling, key)
        self.sampled += len(written.tokens)
        return written


@dataclass(frozen=True)
class Hearing(World):
    """Another world, which notes every reply that it is asked about."""

    inner: Arithmetic
    heard: list[str] = field(default_factory=list)
    is_right: bool = True  # whether its own demonstrations are
    name: ClassVar[str] = "arithmetic"
    is_inline: ClassVar[bool] = True

    @property
    def level(self) -> int:
        return self.inner.level

    def task(self, index: int, heldout: bool = False) -> Task:
        return self.inner.task(index, heldout)

    def check(self, task: Task, reply: str) -> float:
        return self.inner.check(task, reply)

    def solution(self, task: Task) -> str:
        return self.inner.solution(task) + ("" if self.is_right else "0")

    def environment(self) -> Environment:
        return Heard(self, heard=self.heard)


@dataclass
class Heard(SingleTurn):
    heard: list[str] = field(default_factory=list)

    async def step(self, reply: Message) -> Observation:
        self.heard.append(reply.content)
        return await super().step(reply)


@dataclass
class Flown:
    """What came of a run: the groups of its first step, all attempts of its ledger by id, its last figures."""

    groups: list[Group]
    attempts: dict[str, Trajectory]
    row: Metrics
    heard: list[str]


def flown(model: Path, ledger: Path, strategy: Strategy, engine: Engine, **parts: Any) -> Flown:
    """Two steps in a world of sums, after the checks that every strategy must pass."""
    worlds = parts.pop("worlds", (Hearing(Arithmetic(2)),))
    changes = {"worlds": worlds, "sampler": Uniform(worlds), "engine": engine, "strategy": strategy} | parts
    run = make_run(2, **changes)
    with opened(run, model, ledger) as (flow, recorder):
        strategy_meets(strategy, flow.policy)
        run_virtually(train(flow))
        book, row = flow.ledger, recorder.rows[-1]
        assert book.violations() == []
        ids = [id_ for (id_,) in book._rows("SELECT id FROM attempts ORDER BY number, id")]
        made = {id_: book.attempt(id_) for id_ in ids}
        groups = [*book.trained_groups(1), *book.trained_groups(2)]
        _spoken_once(made.values(), groups, flow.policy)
    sampled = sum(attempt.num_sampled for attempt in made.values())
    (counted,) = inside(engine, Counting)
    assert row["tokens_generated"] == sampled == counted.sampled, "every sampled token is in exactly one row"
    heard = worlds[0].heard if isinstance(worlds[0], Hearing) else []
    return Flown(groups[:4], made, row, heard)


def strategy_meets(strategy: Any, policy: Policy) -> None:
    """As a launched run does."""
    for part in inside(strategy, Meets):
        part.meet(policy)


def _spoken_once(attempts: Sequence[Trajectory], groups: list[Group], policy: Policy) -> None:
    """A reply is what was given and what was written, once each; only what was written is trained."""
    for attempt in attempts:
        for turn in attempt.turns:
            assert turn.message.content == policy.template.text(turn.whole)
    for group in groups:
        for attempt in group.scored:
            attempt.set_advantage(1.0)
        (batch,) = pack([replace(group)], TokenMean(), 1, 10_000, "attempt")
        written = [turn.tokens for attempt in group.scored for turn in attempt.turns]
        assert batch.tokens[batch.trainable].tolist() == np.concatenate(written).tolist()
