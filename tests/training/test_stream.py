"""A step from groups that come one after the other has the gradient of the whole batch, and moves the weights once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError
from strop.launch.running.launch import launch
from strop.pipeline import learn
from strop.recipes.classics.grpo import grpo
from strop.recipes.classics.ppo import ppo
from strop.recipes.setting import Setting
from strop.roles import Advantage, Reduction
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.batch import Batch
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import ConstantLength, GroupWise, SequenceMean, TokenMean
from strop.training.requirements import ENTROPY, PolicyStatistic
from strop.training.stream import Stream
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Message, Metrics, Origin, Outcome, Rollout, Task, Turn
from tests.tiny_models import save_pocket_like

SMALL = {"steps": 4, "groups_per_step": 3, "group_size": 4, "heldout_tasks": 2, "max_tokens": 12, "heldout_every": 0}


def groups(seed: int = 0) -> list[Group]:
    """Three groups of rollouts whose lengths and rewards differ; one rollout failed."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(3):
        task = Task((Message("user", str(number)),), "a", "env")
        rollouts = []
        for index in range(4):
            length = int(rng.integers(1, 9))
            turn = Turn(
                rng.integers(4, 40, 5), rng.integers(4, 40, length), -rng.random(length, dtype=np.float32),
                np.zeros(length, np.int64), Message("assistant", "x"),
            )  # fmt: skip
            outcome = Outcome.FAILED if (number, index) == (1, 2) else Outcome.FINISHED
            rollouts.append(Rollout(f"{number}/{index}", task, (turn,), outcome, reward=float(rng.random())))
        made.append(Group(number, task, rollouts))
    return made


def nothing(run: Run, batches: Sequence[Batch], version: int, groups: Sequence[Group]) -> Metrics:
    """Tokens that no weights sampled prove nothing."""
    return {}


def opened(folder: Path) -> TorchTrainer:
    trainer = TorchTrainer(max_tokens=40, clip_norm=0.01)
    trainer.open(folder, 0)
    return trainer


@pytest.mark.parametrize("reduction", [TokenMean(), SequenceMean(), ConstantLength(16), GroupWise()])
@pytest.mark.parametrize("parts", [[[0], [1], [2]], [[2, 0], [1]], [[1, 2, 0]]])
def test_the_gradient_is_that_of_the_whole_draw(tmp_path: Path, reduction: Reduction, parts: list[list[int]]) -> None:
    folder = save_pocket_like(tmp_path)
    run = replace(grpo(Setting(model=str(folder)), kl=0.0), reduction=reduction)
    whole, streamed = opened(folder), opened(folder)
    draw = groups()
    run.advantage(draw)
    objective = Objective(run.losses)
    expected = whole.step(pack(draw, reduction, 0, 40), objective)
    stream = Stream(replace(run, trainer=streamed), 0, [], nothing)
    again = groups()
    for part in parts:
        stream.add([again[index] for index in part])
    before = {name: tensor.clone() for name, tensor in streamed.weights().items()}
    found = stream.finish()
    assert found["grad_norm"] == pytest.approx(expected["grad_norm"], rel=1e-5)
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-4, abs=1e-7)
    if reduction == TokenMean():
        assert found["entropy"] == pytest.approx(expected["entropy"], rel=1e-5)
    for name, tensor in whole.weights().items():
        torch.testing.assert_close(streamed.weights()[name], tensor, rtol=1e-4, atol=1e-6)
        assert name.endswith("norm.weight") or not torch.equal(before[name], tensor)


@dataclass(frozen=True)
class Surprised(Advantage):
    """Advantage by the entropy of each token, against the mean of the siblings' rewards."""

    is_local: ClassVar[bool] = True
    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({ENTROPY})

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            for rollout in group.scored:
                rollout.advantages = (rollout.reward - group.rewards.mean()) * ENTROPY.of(rollout)


@dataclass
class Taught:
    """Remembers what it was taught, and that policy statistics and advantage were still there."""

    seen: list[tuple[int, str, float]] = field(default_factory=list)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        rollouts = [rollout for group in groups for rollout in group.scored]
        assert all(rollout.advantages is not None and "entropy" in rollout.policy_statistics for rollout in rollouts)
        self.seen += [(group.number, each.comparison_group, each.reward) for group in groups for each in group.scored]
        return {"taught": float(len(groups))}


def mixed() -> list[Group]:
    """Of the three groups one has two comparison groups, and of the one no rollout counts; one is of demonstrations
    alone.
    """
    draw = groups()
    for rollout in draw[0].rollouts[2:]:
        rollout.comparison_group = "hinted"
    draw[1].rollouts[2].comparison_group = "failed"
    for rollout in draw[2].rollouts:
        rollout.origin = Origin.TEACHER
    return draw


@pytest.mark.parametrize("parts", [[[0], [1], [2]], [[2, 0], [1]], [[1, 2, 0]]])
def test_comparison_groups_notes_demonstrations_and_learners_are_treated_as_in_one_piece(
    tmp_path: Path, parts: list[list[int]]
) -> None:
    folder = save_pocket_like(tmp_path)
    run = replace(grpo(Setting(model=str(folder)), kl=0.0), advantage=Surprised(), rescore_every=0)
    whole, streamed, taught, again = opened(folder), opened(folder), Taught(), Taught()
    expected = learn(replace(run, trainer=whole), mixed(), 0, [taught])
    stream = Stream(replace(run, trainer=streamed), 0, [again], nothing)
    draw = mixed()
    for part in parts:
        stream.add([draw[index] for index in part])
    found = stream.finish()
    assert found["taught"] == expected["taught"] == 4.0, (
        "two comparison groups, one without what failed, demonstrations"
    )
    assert sorted(again.seen) == sorted(taught.seen) and len(taught.seen) == 11
    assert found["grad_norm"] == pytest.approx(expected["grad_norm"], rel=1e-5), "the mean of two optimizer steps"
    for name, tensor in whole.weights().items():
        torch.testing.assert_close(streamed.weights()[name], tensor, rtol=1e-4, atol=1e-6)
    assert not any(rollout.policy_statistics for group in draw for rollout in group.rollouts), (
        "nobody keeps policy statistics"
    )


def run_of(folder: Path, **changes: Any) -> Run:
    return replace(grpo(Setting(model=str(folder), **SMALL)), **changes)  # type: ignore[arg-type]


def test_a_streamed_run_trains_every_group_once(tmp_path: Path) -> None:
    folder = save_pocket_like(tmp_path / "model")
    advantage = AlongTree(run_of(folder).advantage)  # which learns: it says something after each step
    summary = launch(run_of(folder, streams=True, advantage=advantage), tmp_path, "streamed")
    plain = launch(run_of(folder, advantage=advantage), tmp_path, "plain")
    assert summary["steps"] == plain["steps"] == 4
    assert summary["tokens_trained"] == summary["tokens_generated"]
    rows = [
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("streamed", "plain")
    ]
    for one, other in zip(rows[0][1:2], rows[1][1:2], strict=True):  # the first step, before rounding adds up
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-3)
        assert one["reward"] == other["reward"] and one["lag_max"] == 0
        assert one.keys() == other.keys() >= {"shared_token_share", "rescored_difference"}


def test_what_cannot_be_streamed_is_refused(tmp_path: Path) -> None:
    folder = save_pocket_like(tmp_path / "model")
    wrong = [
        (grpo(Setting(model=str(folder), lag=2, **SMALL)), "lag=0"),  # type: ignore[arg-type]
        (ppo(Setting(model=str(folder), **SMALL)), "whole batch"),  # type: ignore[arg-type]
        (run_of(folder, minibatches=3), "3 minibatches"),
    ]
    for run, message in wrong:
        with pytest.raises(ConfigurationError, match=message):
            launch(replace(run, streams=True), tmp_path, "refused")
