"""RLinf-VLA: one ratio per turn, equal weights of turns and rollouts, and environments that overlap with inference."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.backends import Completion
from strop.filter.gates.reward_band import RewardBand
from strop.generate.agents.chat import Chat
from strop.generate.engines.scripted import Scripted
from strop.generate.rollout import play
from strop.recipes.system.rlinf_vla import TurnClip, rlinf_vla
from strop.roles import Episode
from strop.training.arithmetic.turn_returns import over_turns
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.reductions.means import EqualTurns
from strop.types import Group, IntArray, Message, Observation, Outcome, Rollout, Sampling, Start, Task
from tests.building import TASK, make_batch, make_group, say, turn, written
from tests.clock import run_virtually
from tests.generate.talking import policy_of, save_folder


def two_turns(advantages: list[float]) -> Batch:
    """Two rollouts: turns of 2 and 1 tokens, with one prompt token between them, and a turn of 2."""
    batch = make_batch([[-1.0] * 4, [-1.0] * 2], advantages)
    read = torch.tensor([0, 0, 0, 1, 0, 0, 0, 0]).bool()
    batch.trainable = batch.trainable & ~read
    batch.behavior_logprobs = batch.behavior_logprobs.where(~read, torch.nan)
    return batch


def test_a_turn_has_the_product_of_its_tokens_ratios() -> None:
    """Log ratios (.1 .05 | .3) and (-.5 -.6): ratios exp(.15), exp(.3) past 1.28, exp(-1.1) below .8."""
    batch = two_turns([1.0, -2.0])
    output = say([[-0.9, -0.95, 7.0, -0.7], [-1.5, -1.6]])
    loss, metrics = TurnClip()(output, batch)
    assert written(batch, loss) == pytest.approx([-exp(0.15), -exp(0.15), -1.28, 1.6, 1.6])
    loss.sum().backward()
    # both tokens of a turn carry its loss, and both move its ratio
    assert written(batch, output.logprobs.grad) == pytest.approx([-2 * exp(0.15), -2 * exp(0.15), 0.0, 0.0, 0.0])
    share = 1 / 6  # of each token of make_batch
    assert metrics["clipped_share"] == pytest.approx(3 * share)
    assert metrics["turn_drift"] == pytest.approx(share * (0.15 * 2 + 0.3 + 1.1 * 2))
    assert metrics["ratio"] == pytest.approx(share * (2 * exp(0.15) + exp(0.3) + 2 * exp(-1.1)))
    assert metrics["kl"] == pytest.approx(share * sum(exp(x) - 1 - x for x in (0.1, 0.05, 0.3, -0.5, -0.6)))


def test_the_dual_clip_bounds_a_turn_with_negative_advantage() -> None:
    """exp(2) = 7.39 with A = -1: PPO does not clip it, the dual clip does at 3."""
    batch, output = make_batch([[-3.0, -3.0]], [-1.0]), say([[-2.0, -2.0]])
    assert written(batch, TurnClip()(output, batch)[0]) == pytest.approx([3.0, 3.0])
    free, _ = TurnClip(dual=None)(output, batch)
    assert written(batch, free) == pytest.approx([exp(2.0)] * 2)


def test_a_turn_is_clipped_before_its_tokens() -> None:
    batch, output = make_batch([[-1.0] * 8], [1.0]), say([[-1.0 + log(1.05)] * 8])
    loss, metrics = TurnClip()(output, batch)
    assert written(batch, loss) == pytest.approx([-1.28] * 8) and 1.05 < 1.28 < 1.05**8
    assert metrics["clipped_share"] == pytest.approx(1.0)


def test_the_log_ratio_is_clamped_to_twenty() -> None:
    """60 tokens that are 8.9 likelier, and 60 that are 8.9 less likely: 534 either way, too much for float32."""
    up, down = ([[-0.1] * 60], [[-9.0] * 60])
    loss, _ = TurnClip(dual=None)(say(up), make_batch(down, [-1.0]))
    assert loss[1:].tolist() == pytest.approx([exp(20.0)] * 60)
    loss, metrics = TurnClip()(say(down), make_batch(up, [1.0]))
    assert loss[1:].tolist() == pytest.approx([-exp(-20.0)] * 60) and metrics["turn_drift"] == pytest.approx(20.0)


def test_sums_stop_where_a_turn_ends() -> None:
    batch = two_turns([0.0, 0.0])
    values = torch.tensor([9.0, 1.0, 2.0, 9.0, 4.0, 9.0, 8.0, 16.0], dtype=torch.float64)
    assert over_turns(values, batch).tolist() == [0.0, 3.0, 3.0, 0.0, 4.0, 0.0, 24.0, 24.0]


def rollout(name: str, *lengths: int, outcome: Outcome = Outcome.FINISHED) -> Rollout:
    return Rollout(name, TASK, tuple(turn(length) for length in lengths), outcome)


def test_rollouts_and_their_turns_have_equal_weight() -> None:
    rollouts = [rollout("a", 1, 3, 0), rollout("b", 2), rollout("c", 5, outcome=Outcome.FAILED), rollout("d", 0)]
    group = Group(0, TASK, rollouts)
    found = EqualTurns()([group])
    assert found["a"].tolist() == pytest.approx([1 / 4, 1 / 12, 1 / 12, 1 / 12])
    assert found["b"].tolist() == pytest.approx([1 / 4, 1 / 4])
    assert found["d"].tolist() == [] and "c" not in found and EqualTurns().mass([group]) == 2.0
    longer = EqualTurns()([Group(0, TASK, [rollout("a", 10, 30, 5, 7), rollout("b", 2)])])
    assert longer["a"].sum() == pytest.approx(0.5) and longer["b"].tolist() == pytest.approx([1 / 4, 1 / 4])
    assert found["a"].dtype == np.float32


def test_tokens_have_the_same_bounds_where_they_are_the_unit() -> None:
    """As the release has it with GRPO: 0.8, 1.28 and 3."""
    assert rlinf_vla(unit="token").losses == (Clip(low=0.2, high=0.28, dual=3.0),)
    assert rlinf_vla().losses == (TurnClip(low=0.2, high=0.28, dual=3.0),)


def test_groups_that_nearly_all_or_nearly_none_solve_are_dropped() -> None:
    """Rewards of 0 and 5 and bounds of .5 and 4.5 in the release: from 10 to 90 %."""
    gate = RewardBand(0.1, 0.9)
    kept = [gate(make_group([1.0] * right + [0.0] * (8 - right))).group is not None for right in range(9)]
    assert kept == [False, *[True] * 7, False]


@dataclass
class Simulated(Episode):
    """A simulator with steps of half a second; an episode has four steps."""

    simulator: asyncio.Lock
    steps: int = 0

    async def reset(self, task: Task) -> None:
        self.steps = 0

    async def step(self, completion: Message) -> Observation:
        async with self.simulator:
            await asyncio.sleep(0.5)
        self.steps += 1
        return Observation((Message("user", "on"),), done=self.steps == 4, reward=1.0)


@dataclass
class OneLane(Scripted):
    """An engine that decodes one completion at a time."""

    lane: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        async with self.lane:
            return await super().sample(prompt, sampling, key)


def test_simulation_and_inference_overlap_without_stages(tmp_path: Path) -> None:
    """Half a second each: one rollout after the other takes 8 s, two concurrent ones 4 s and the first half."""
    save_folder(tmp_path)

    async def both(count: int) -> list[Rollout]:
        engine = OneLane(lambda prompt, key: "a", seconds_per_token=0.25)  # and an end token
        engine.open(tmp_path)
        simulator = asyncio.Lock()
        policy = policy_of(tmp_path, engine)

        class Simulator:
            name = "simulated"

            def episode(self) -> Simulated:
                return Simulated(simulator)

        dialogues = [policy.dialogue(replace(TASK), Start(str(key), key)) for key in range(count)]
        return await asyncio.gather(*(play(Chat(), Simulator(), each) for each in dialogues))  # type: ignore[arg-type]

    alone, seconds = run_virtually(both(1))
    assert seconds == pytest.approx(4.0)
    made, seconds = run_virtually(both(2))
    assert seconds == pytest.approx(4.5)
    assert [each.turn_rewards for each in made] == [alone[0].turn_rewards] * 2 == [(1.0,) * 4] * 2
