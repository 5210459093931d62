"""Step rewards behind gates: all small rollouts by the definition, unknown outcomes, turns of a store, and in a run."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import ClassVar

import pytest

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.filter.rewards.controls import Flat
from strop.filter.rewards.from_environment import CarriedOut, Earned
from strop.filter.scoring import Scorer
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.recipes.reward.g_ra import Gated
from strop.roles import Reward
from strop.types import Group, Message, Outcome, Rollout
from tests.building import TASK, make_group, turn
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like


@dataclass(frozen=True)
class Told(Reward):
    """Scores that are known."""

    scores: Sequence[float]
    weight: float = 1.0
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return list(self.scores)


def test_all_rollouts_of_three_levels() -> None:
    """Level i counts unless some level above it is at or below its gate; penalties are shut out like bonuses."""
    values, gates = (-1.0, 0.0, 0.5, 1.0), (0.5, 0.0)  # of the second and the third level
    combinations = list(product(values, repeat=3))
    levels = [Told([each[i] for each in combinations]) for i in range(3)]
    found = Gated((levels[0], replace(levels[1], weight=2.0), levels[2]), gates)(make_group([0.0] * len(combinations)))
    for (low, middle, outcome), reward in zip(combinations, found, strict=True):
        expected = outcome
        expected += 2 * middle if outcome > 0.0 else 0.0
        expected += low if outcome > 0.0 and middle > 0.5 else 0.0
        assert reward == pytest.approx(expected)


def test_below_the_gate_steps_change_nothing_and_above_it_they_add_up() -> None:
    group = make_group([0.0] * 4)
    for steps in ([0.0] * 4, [0.1, 5.0, -3.0, 100.0]):
        closed = Gated((Told(steps), Flat(0.3)), (0.3,))(group)
        assert closed == [0.3] * 4, "at the gate is not above it"
        assert Gated((Told(steps), Flat(0.31)), (0.3,))(group) == pytest.approx([each + 0.31 for each in steps])


def test_an_outcome_that_nobody_knows_is_never_a_reward() -> None:
    group = make_group([0.0, 0.0])
    for rollout in group.rollouts:
        rollout.rewards = {}
    scores = asyncio.run(Scorer([Gated((Flat(9.0), Told([math.nan, 1.0])))])(group))
    assert scores.failed == 1 and group.rollouts[0].outcome is Outcome.FAILED
    assert [rollout.reward for rollout in group.scored] == [10.0]


def test_what_it_tells() -> None:
    """Two of three scored rollouts pass; a rollout that was not scored opened nothing."""
    group = make_group([0.0] * 4, failed=[3], turn_rewards=[(1.0,), (0.0,), (0.0, 0.5), (1.0,)])
    gated = Gated((Flat(), Earned()))
    assert gated(group) == [2.0, 0.0, 1.5, 2.0]
    assert gated.learn([group]) == pytest.approx({"open_share": 2 / 3})
    assert gated.learn([make_group([1.0])]) == {"open_share": 0.0}, "nobody was scored"
    assert Gated((Flat(), Earned())).learn([]) == {"open_share": 0.0}


@pytest.mark.parametrize(("levels", "gates"), [(1, ()), (2, ()), (2, (0.0, 0.0)), (0, ())])
def test_gates_that_do_not_fit_are_refused(levels: int, gates: tuple[float, ...]) -> None:
    with pytest.raises(ConfigurationError, match=f"got {levels} levels and {len(gates)} gates"):
        Gated((Flat(),) * levels, gates)


def test_turns_that_were_carried_out_are_counted() -> None:
    """Two answers, one of them of two calls; a refusal beside an answer, a user's word and silence count nothing."""
    heard = [
        (),
        (Message("tool", "7"),),
        (Message("tool", "3"), Message("tool", "ok")),
        (Message("tool", "4"), Message("tool", "error: no such key")),
        (Message("user", "go on"),),
    ]
    rollout = Rollout("a", TASK, tuple(replace(turn(1), told=told) for told in heard), Outcome.FINISHED)
    assert CarriedOut(0.25)(Group(0, TASK, [rollout])) == [0.5]


def test_in_a_run_calls_pay_nothing_until_the_answer_is_right(tmp_path: Path) -> None:
    """Half of the rollouts look up and then say 1000, which no sum is; a lucky one would be paid for both."""
    engine = Scripted(lambda prompt, key: "<call>get red</call>" if "tool" not in prompt and key % 2 else "1000")
    reward, envs = Gated((CarriedOut(), Earned())), (KeyValue(1),)
    run = make_run(steps=1, envs=envs, sampler=Uniform(envs), engine=engine, rewards=(reward, CarriedOut()))
    with opened(run, save_pocket_like(tmp_path), tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
    row = recorder.rows[0]
    assert row["reward/gated"] == row["open_share"] == 0 and row["reward/carried_out"] > 0
