"""Trainers that hold a step near: strop.training.trainers.two_phase, moving_reference, and turn_by_turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.objective.seeupo import TurnByTurn, reweighed
from strop.roles import Trainer
from strop.training.advantages.group_relative import GroupMean
from strop.training.arithmetic.turn_returns import turn_numbers
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.losses.gspo import Gspo
from strop.training.losses.kl import Kl
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import GroupWise, SequenceMean
from strop.training.requirements import LOGPROBS, REFERENCE_LOGPROBS, Logits, Logprobs, Need
from strop.training.trainers.moving_reference import MovingReference
from strop.training.trainers.torch import TorchTrainer
from strop.training.trainers.two_phase import Multiplier, TwoPhase
from strop.types import Group, Metrics
from tests.building import make_group, turn


def talked(turns: list[tuple[int, ...]], rewards: list[float]) -> Group:
    """Rollouts of several turns, whose tokens differ."""
    group = make_group(rewards)
    stream = np.random.default_rng(0)
    for rollout, sizes in zip(group.rollouts, turns, strict=True):
        rollout.turns = tuple(replace(turn(size), tokens=stream.integers(3, 30, size)) for size in sizes)
    return group


def packed(trainer: Trainer, group: Group, version: int = 0) -> list[Batch]:
    """With the behaviour the trainer's own, so that ratios begin at 1."""
    GroupMean()([group])
    batches = pack([group], SequenceMean(), version, 4096)
    trainer.annotate(batches, frozenset({Logprobs("proximal")}))
    for batch in batches:
        batch.behavior_logprobs = batch.logprobs["proximal"]
    return batches


@pytest.mark.parametrize("limit", [0.02, 0.0005])
def test_fixpo_keeps_every_state_near(model: Path, limit: float) -> None:
    """A learning rate that would carry some states far: after each step no state's KL exceeds the limit."""
    group = talked([(5,), (4,)], [1.0, 0.0])
    plain, held = TorchTrainer(learning_rate=3e-3), TwoPhase(TorchTrainer(learning_rate=3e-3), limit, sweeps=200)
    largest = {}
    for trainer in (plain, held):
        trainer.open(model, 0)
        batches = packed(trainer, group)
        trainer.annotate(batches, frozenset({Logits("proximal")}))
        metrics = trainer.step(batches, Objective((Clip(1.0, 1e9),)))
        measuring = TwoPhase(trainer.inner if isinstance(trainer, TwoPhase) else trainer, limit)
        largest[trainer is held] = measuring._largest(batches)
        if trainer is held:
            assert metrics["is_bound_kept"] == 1.0 and metrics["kl_largest"] == pytest.approx(largest[True])
    assert largest[True] <= limit
    if limit == 0.0005:
        assert largest[False] > limit and metrics["repairs"] > 0


def test_the_multiplier_rises_beyond_the_margin_falls_below_it_and_is_never_negative() -> None:
    for gradient, moved in ((0.2 - 2 * 0.1, 0.0), (0.2 - 2 * 0.3, 0.01), (0.2 - 2 * 0.05, -0.01)):
        multiplier = Multiplier()
        multiplier.descend(gradient, 0.01)
        assert multiplier.value == pytest.approx(1.0 + moved, abs=1e-6)
    low = Multiplier(value=0.005)
    low.descend(1.0, 0.01)
    assert low.value == 0.0
    with pytest.raises(ConfigurationError, match="margin >= 1"):
        TwoPhase(TorchTrainer(), margin=0.5)


@pytest.mark.parametrize(("limit", "rises"), [(1e3, False), (1e-9, True)])
def test_the_penalty_weighs_more_after_a_step_too_far_and_less_after_a_short_one(
    model: Path, limit: float, rises: bool
) -> None:
    trainer = TwoPhase(TorchTrainer(learning_rate=1e-3), limit, sweeps=1)
    trainer.open(model, 0)
    batches = packed(trainer, talked([(5,), (4,)], [1.0, 0.0]))
    trainer.annotate(batches, frozenset({Logits("proximal")}))
    metrics = trainer.step(batches, Objective((Clip(1.0, 1e9),)))
    assert metrics["repairs"] == float(rises)
    assert metrics["kl_weight"] == pytest.approx(1.02 if rises else 0.99, abs=1e-3)  # by .01 for every step


def test_a_reset_reference_is_the_policy_and_an_averaged_one_lies_between(model: Path) -> None:
    objective = Objective((Clip(), Kl("k3", 0.1)))
    for keep in (0.0, 0.75):
        trainer = MovingReference(TorchTrainer(learning_rate=1e-2), TorchTrainer(), every=2, keep=keep)
        trainer.open(model, 0)
        began = {name: weight.clone() for name, weight in trainer.weights().items()}
        for version in range(3):
            batches = packed(trainer, talked([(3,), (3,)], [1.0, 0.0]), version)
            trainer.annotate(batches, objective.needs)
            if version < 2:  # not moved yet
                torch.testing.assert_close(trainer.reference.weights(), began)
            metrics = trainer.step(batches, objective) if version < 2 else {}
            assert metrics.get("reference_version", 0.0) == 0.0
        now, reference = trainer.weights(), trainer.reference.weights()
        expected = {name: keep * began[name] + (1 - keep) * now[name] for name in now}
        torch.testing.assert_close(reference, expected)
        if keep == 0.0:
            torch.testing.assert_close(batches[0].logprobs["reference"], batches[0].logprobs["proximal"])


def test_a_resumed_reference_is_where_it_was(model: Path, tmp_path: Path) -> None:
    trainer = MovingReference(TorchTrainer(learning_rate=1e-2), TorchTrainer(), every=1, keep=0.5)
    trainer.open(model, 0)
    objective = Objective((Clip(), Kl("k3", 0.1)))
    for version in range(3):
        batches = packed(trainer, talked([(3,), (3,)], [1.0, 0.0]), version)
        trainer.annotate(batches, objective.needs)
        trainer.step(batches, objective)
    trainer.save(tmp_path)
    again = MovingReference(TorchTrainer(learning_rate=1e-2), TorchTrainer(), every=1, keep=0.5)
    again.open(model, 0)
    again.resume(tmp_path)
    torch.testing.assert_close(again.reference.weights(), trainer.reference.weights(), rtol=0, atol=0)
    assert again._moved == trainer._moved == 2
    with pytest.raises(ConfigurationError, match="0 <= keep < 1"):
        MovingReference(TorchTrainer(), TorchTrainer(), keep=1.0)


def test_a_reference_that_moves_once_stays_there(model: Path) -> None:
    trainer = MovingReference(TorchTrainer(learning_rate=1e-2), TorchTrainer(), every=1, times=1)
    trainer.open(model, 0)
    objective = Objective((Clip(), Kl("k3", 0.1)))
    moved = []
    for version in range(4):
        batches = packed(trainer, talked([(3,), (3,)], [1.0, 0.0]), version)
        trainer.annotate(batches, objective.needs)
        moved.append(trainer.step(batches, objective)["reference_version"])
    assert moved == [0.0, 1.0, 1.0, 1.0]


def test_turns_are_numbered_within_rollouts(model: Path) -> None:
    trainer = TorchTrainer()
    trainer.open(model, 0)
    (batch,) = packed(trainer, talked([(2, 1), (3,), (1, 1, 2)], [1.0, 0.0, 0.5]))
    # one prompt token before each turn
    expected = [-1, 0, 0, -1, 1, -1, 0, 0, 0, -1, 0, -1, 1, -1, 2, 2]
    assert turn_numbers(batch).tolist() == expected


def test_the_weight_of_earlier_turns_by_hand() -> None:
    """.1 nat per token: 1.1052; .5 nat: held at 1.2; a rollout without the turn keeps its own."""
    moved, sizes = torch.tensor([0.2, 1.0, 0.0, -3.0]), torch.tensor([2.0, 2.0, 0.0, 3.0])
    found = reweighed(torch.tensor([1.0, 1.0, 1.1, 1.0]), moved, sizes, 0.2)
    assert found.tolist() == pytest.approx([1.1052, 1.2, 1.1, 0.8], abs=5e-5)
    assert (found[:2] * 0.7071).tolist() == pytest.approx([0.7815, 0.8485], abs=5e-5)


def test_one_turn_is_one_plain_step(model: Path) -> None:
    """With a single turn per rollout it is GSPO on a sequence mean, to the bit."""
    weights = []
    for trainer in (TorchTrainer(learning_rate=1e-2), TurnByTurn(TorchTrainer(learning_rate=1e-2))):
        trainer.open(model, 0)
        trainer.step(packed(trainer, talked([(3,), (2,)], [1.0, 0.0])), Objective((Gspo(0.2, 0.2),)))
        weights.append(trainer.weights())
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=1e-7)


@dataclass
class Drifting(TorchTrainer):
    """Every step makes every token likelier by .1 nat; what each step was given is kept."""

    asked: list[tuple[list[int], list[float], list[float]]] = field(default_factory=list, init=False)

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        for batch in batches:
            batch.fill("proximal", torch.full_like(batch.behavior_logprobs, 0.1 * len(self.asked) - 3))

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:  # type: ignore[override]
        (batch,) = batches
        rows = batch.trainable
        given = (batch.advantages, batch.behavior_logprobs)
        self.asked.append((rows.nonzero()[:, 0].tolist(), *(each[rows].tolist() for each in given)))  # type: ignore[arg-type]
        return {"loss": 0.0}


def test_turns_from_the_last_to_the_first_each_from_the_weights_before_it() -> None:
    """Three turns: weights 1, 1.1052 and 1.2 (1.2214 is held); behaviour is renewed before each turn's step."""
    inner = Drifting()
    group = talked([(1, 2, 1)], [1.0])
    group.rollouts[0].set_advantage(1.0)
    batches = pack([group], SequenceMean(), 0, 4096)  # prompt, a, prompt, b, b, prompt, c
    TurnByTurn(inner).step(batches, Objective((Gspo(0.2, 0.2),)))
    assert [rows for rows, _, _ in inner.asked] == [[6], [3, 4], [1]]
    assert [advantage[0] for _, advantage, _ in inner.asked] == pytest.approx([1.0, 1.1052, 1.2], abs=5e-5)
    assert [behavior[0] for _, _, behavior in inner.asked] == pytest.approx([-3.0, -2.9, -2.8])


def test_as_many_steps_as_the_longest_rollout_has_turns(model: Path) -> None:
    trainer = TurnByTurn(TorchTrainer(learning_rate=1e-3))
    trainer.open(model, 0)
    metrics = trainer.step(packed(trainer, talked([(2, 1, 2), (3,)], [1.0, 0.0])), Objective((Gspo(0.2, 0.2),)))
    assert metrics["turns_updated"] == 3.0
    assert trainer.inner._opened.optimizer.num_steps == 3  # type: ignore[attr-defined]


def test_every_group_counts_the_same() -> None:
    groups = [make_group([1.0, 0.0], [3, 1]), make_group([1.0], [2], number=1), make_group([1.0], [0], number=2)]
    shares = GroupWise()(groups)
    assert shares["0-0"].tolist() == pytest.approx([1 / 8] * 3) and shares["0-1"].tolist() == pytest.approx([1 / 8])
    assert shares["1-0"].tolist() == pytest.approx([1 / 4] * 2)
    assert sum(float(each.sum()) for each in shares.values()) == pytest.approx(1.0)


def test_notes_of_a_moving_reference_are_its_own(model: Path) -> None:
    """And it moves where no loss asks for it, too."""
    trainer = MovingReference(TorchTrainer(learning_rate=1e-2), TorchTrainer(), every=1, keep=0.5)
    trainer.open(model, 0)
    objective, noted = Objective((Clip(),)), []
    for version in range(3):
        group = talked([(3,), (3,)], [1.0, 0.0])
        trainer.policy_statistic([group], frozenset({LOGPROBS, REFERENCE_LOGPROBS}))
        noted.append(
            [
                tuple(policy_statistic.of(each) for policy_statistic in (LOGPROBS, REFERENCE_LOGPROBS))
                for each in group.scored
            ]
        )
        batches = packed(trainer, group, version)
        trainer.annotate(batches, objective.needs)
        assert trainer.step(batches, objective)["reference_version"] == version
    for policy, reference in noted[0]:
        np.testing.assert_array_equal(policy, reference)
    apart = [np.abs(policy - reference).max() for policy, reference in noted[2]]
    assert min(apart) > 1e-4 and np.abs(noted[2][0][1] - noted[0][0][1]).max() > 1e-4
    plain = talked([(3,), (3,)], [1.0, 0.0])
    trainer.policy_statistic([plain], frozenset({REFERENCE_LOGPROBS}))
    assert all(set(each.policy_statistics) == {"reference_logprobs"} for each in plain.scored)
