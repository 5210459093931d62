"""Rollouts credited with their own probability: by hand, by enumeration of all completions, and the negative control
beside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.reward.rlsc import Confidence
from strop.training.advantages.group_relative import GroupMean, NextSibling
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import ConstantLength
from strop.types import Group, Outcome, Rollout
from tests.building import TASK, advantages_of, make_batch, make_group, say, turn


def sampled(*logprobs: Sequence[float]) -> Group:
    """A rollout for each row of logprobs, over two turns where there are two tokens or more."""
    rollouts = []
    for number, row in enumerate(logprobs):
        parts = [row[:1], row[1:]] if len(row) > 1 else [row]
        turns = tuple(replace(turn(len(part)), logprobs=np.array(part, dtype=np.float32)) for part in parts)
        rollouts.append(Rollout(str(number), TASK, turns, Outcome.FINISHED))
    return Group(0, TASK, rollouts)


def test_by_hand() -> None:
    """1/2 * 1/4 = 1/8 over two turns; a rollout of probability 0 keeps the floor; what failed or was given up gets
    none.
    """
    group = sampled([math.log(0.5), math.log(0.25)], [-400.0, -400.0], [math.log(0.5)], [0.0])
    group.rollouts[2].outcome, group.rollouts[3].outcome = Outcome.FAILED, Outcome.PRUNED
    Confidence(0.1)([group])
    assert advantages_of(group) == pytest.approx([0.225, 0.1, None, None])
    first = group.rollouts[0].advantages
    assert first is not None and first.tolist() == pytest.approx([0.225, 0.225])
    Confidence(0.0)([group])
    assert advantages_of(group)[:2] == pytest.approx([0.125, 0.0])
    told = Confidence().learn([group])
    assert told == pytest.approx({"confidence": 0.0625, "confident_share": 0.5})
    assert Confidence().learn([sampled([math.log(0.5)])]) == pytest.approx({"confidence": 0.5, "confident_share": 1.0})
    assert Confidence().learn([]) == {"confidence": 0.0, "confident_share": 0.0}


def test_a_turn_s_probability_is_that_of_all_its_tokens() -> None:
    """1/2 in the first turn, then 1/4 * 1/8 in the second: 1/64; a completion without tokens is certain."""
    group = sampled([math.log(0.5), math.log(0.25), math.log(0.125)], [])
    Confidence(0.0)([group])
    found = [rollout.advantages for rollout in group.rollouts]
    assert found[0] is not None and found[0].tolist() == pytest.approx([1 / 64] * 3)
    assert found[1] is not None and found[1].shape == (0,)
    assert Confidence().learn([group]) == pytest.approx({"confidence": (1 / 64 + 1) / 2, "confident_share": 1.0})


def probabilities(table: Tensor) -> dict[tuple[int, int], tuple[Tensor, Tensor]]:
    """Log-probabilities of both tokens of every completion; row 0 is the first token's, row 1 + a that of the one after
    a.
    """
    logs = table.log_softmax(-1)
    return {(a, b): (logs[0, a], logs[1 + a, b]) for a, b in product(range(3), repeat=2)}


def test_its_gradient_is_half_of_that_of_the_probability_that_two_rollouts_agree() -> None:
    """Over all nine completions of two tokens, each as often as it is sampled."""
    table = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    exact = sum((one + two).exp() ** 2 for one, two in probabilities(table).values())
    assert isinstance(exact, Tensor)
    (expected,) = torch.autograd.grad(exact, table)
    found = torch.zeros_like(table)
    for completion, (one, two) in probabilities(table).items():
        group = sampled([one.item(), two.item()])
        Confidence(0.0)([group])
        share = [ConstantLength(1)([group])["0"].tolist()]
        advantage = advantages_of(group)[0]
        batch = make_batch([[one.item(), two.item()]], advantages=[advantage or 0.0], share=share)
        output = say([[one.item(), two.item()]])
        loss, _ = Reinforce()(output, batch)
        (batch.share * loss).sum().backward()
        pull = output.logprobs.grad
        assert pull is not None
        (gradient,) = torch.autograd.grad(
            pull[1] * probabilities(table)[completion][0] + pull[2] * probabilities(table)[completion][1], table
        )
        found += (one + two).exp().item() * gradient
    assert torch.allclose(found, -expected / 2, atol=1e-6)


def test_as_many_copies_of_the_same_rollouts_change_nothing() -> None:
    rows = [[-0.5, -0.1], [-2.0, -0.3]]
    totals = []
    for copies in (1, 3):
        group = sampled(*(rows * copies))
        Confidence()([group])
        shares = ConstantLength(1)([group])
        advantage = zip(group.scored, rows * copies, strict=True)
        totals.append(sum(float(shares[a.id].sum()) / 2 * a.advantages[0] * sum(row) for a, row in advantage))  # type: ignore[index]
    assert totals[0] == pytest.approx(totals[1])


def test_a_floor_below_0_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"floor >= 0, got -0\.1"):
        Confidence(-0.1)


def test_the_control_hands_credit_on_to_the_sibling_before() -> None:
    """Mean 2: advantages -1, 0, 1 go one place around; who failed neither gives nor takes; a single one keeps its
    own.
    """
    group = make_group([1.0, 9.0, 2.0, 3.0], lengths=[1, 1, 2, 3], failed=[1])
    alone = make_group([5.0], number=1)
    NextSibling(GroupMean())([group, alone])
    assert advantages_of(group) == [0.0, None, 1.0, -1.0] and advantages_of(alone) == [0.0]
    last = group.rollouts[3].advantages
    assert last is not None and last.tolist() == [-1.0, -1.0, -1.0]
