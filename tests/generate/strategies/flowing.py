"""A small run with scripted completions, and what must hold in it whichever rollouts a strategy makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from strop.backends import Completion
from strop.capabilities import Meets, inside
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.single_turn import SingleTurn
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.pipeline import train
from strop.roles import Engine, Environment, Episode, Strategy
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.types import Group, IntArray, Message, Metrics, Observation, Rollout, Sampling, Task
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
class Hearing(Environment):
    """Another environment, which notes every completion that it is asked about."""

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

    def check(self, task: Task, completion: str) -> float:
        return self.inner.check(task, completion)

    def solution(self, task: Task) -> str:
        return self.inner.solution(task) + ("" if self.is_right else "0")

    def episode(self) -> Episode:
        return Heard(self, heard=self.heard)


@dataclass
class Heard(SingleTurn):
    heard: list[str] = field(default_factory=list)

    async def step(self, completion: Message) -> Observation:
        self.heard.append(completion.content)
        return await super().step(completion)


@dataclass
class Flown:
    """What came of a run: the groups of its first step, all rollouts of its ledger by id, its last metrics."""

    groups: list[Group]
    rollouts: dict[str, Rollout]
    row: Metrics
    heard: list[str]


def flown(model: Path, ledger: Path, strategy: Strategy, engine: Engine, **parts: Any) -> Flown:
    """Two steps in an environment of sums, after the checks that every strategy must pass."""
    envs = parts.pop("envs", (Hearing(Arithmetic(2)),))
    changes = {"envs": envs, "sampler": Uniform(envs), "engine": engine, "strategy": strategy} | parts
    run = make_run(2, **changes)
    with opened(run, model, ledger) as (flow, recorder):
        strategy_meets(strategy, flow.policy)
        run_virtually(train(flow))
        book, row = flow.ledger, recorder.rows[-1]
        assert book.violations() == []
        ids = [id_ for (id_,) in book._rows("SELECT id FROM rollouts ORDER BY number, id")]
        made = {id_: book.rollout(id_) for id_ in ids}
        groups = [*book.trained_groups(1), *book.trained_groups(2)]
        _spoken_once(made.values(), groups, flow.policy)
    sampled = sum(rollout.num_sampled for rollout in made.values())
    (counted,) = inside(engine, Counting)
    assert row["tokens_generated"] == sampled == counted.sampled, "every sampled token is in exactly one row"
    heard = envs[0].heard if isinstance(envs[0], Hearing) else []
    return Flown(groups[:4], made, row, heard)


def strategy_meets(strategy: Any, policy: Policy) -> None:
    """As a launched run does."""
    for part in inside(strategy, Meets):
        part.meet(policy)


def _spoken_once(rollouts: Sequence[Rollout], groups: list[Group], policy: Policy) -> None:
    """A completion is what was given and what was written, once each; only what was written is trained."""
    for rollout in rollouts:
        for turn in rollout.turns:
            assert turn.message.content == policy.template.text(turn.whole)
    for group in groups:
        for rollout in group.scored:
            rollout.set_advantage(1.0)
        (batch,) = pack([replace(group)], TokenMean(), 1, 10_000, "rollout")
        written = [turn.tokens for rollout in group.scored for turn in rollout.turns]
        assert batch.tokens[batch.trainable].tolist() == np.concatenate(written).tolist()
