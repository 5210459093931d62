"""What expert iteration fits: the policy restricted to what is right, or what is right once each."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from strop.filter.apply_gates import passes
from strop.filter.gates.successes_only import Successes
from strop.recipes.objective.expert_iteration import Distinct, calculations
from strop.roles import Gate
from strop.training.losses.likelihood import Likelihood
from strop.training.pack import pack
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Message
from tests.building import Said, make_group, turn


def saying(completions: list[str], rewards: list[float] | None = None) -> Group:
    """One token per rollout, the same for the same completion."""
    group = make_group(rewards or [1.0] * len(completions))
    for rollout, completion in zip(group.rollouts, completions, strict=True):
        token = np.array([sorted(set(completions)).index(completion)])
        rollout.turns = (replace(turn(1), tokens=token, message=Message("assistant", completion)),)
        rollout.set_advantage(0.0)
    return group


def fit(group: Group, gates: list[Gate]) -> list[float]:
    """The exact minimiser of the likelihood loss over three answers, as logits of a softmax."""
    kept = passes(group, gates).group
    assert kept is not None
    (batch,) = pack([kept], SequenceMean(), 0, 1000)
    theta = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([theta], lr=2.0)
    for _ in range(3000):
        optimizer.zero_grad()
        logprobs = theta.log_softmax(0)[batch.tokens.clamp(max=2)] * batch.trainable
        value, _ = Likelihood()(Said(logprobs, torch.zeros_like(logprobs)), batch)
        (batch.share * value).sum().backward()
        optimizer.step()
    return theta.detach().softmax(0).tolist()


def test_the_fit_is_the_policy_restricted_to_what_is_right() -> None:
    """pi_0 = (.5, .3, .2) with R = (0, 1, 1) becomes (0, .6, .4), and (0, .5, .5) without duplicates."""
    completions = ["a"] * 5 + ["b"] * 3 + ["c"] * 2
    group = saying(completions, [float(completion != "a") for completion in completions])
    assert fit(group, [Successes()]) == pytest.approx([0.0, 0.6, 0.4], abs=1e-3)
    assert fit(group, [Successes(), Distinct()]) == pytest.approx([0.0, 0.5, 0.5], abs=1e-3)


def test_the_same_calculations_are_the_same_calculations() -> None:
    group = saying(["1+2=3, 3*4=12", "so 1 + 2 is 3 and 3 * 4 is 12", "3*4=12, 1+2=3", "12", "twelve", "12"])
    assert calculations(group.rollouts[0]) == ("1+2", "3*4") == calculations(group.rollouts[1])
    gate_result = Distinct()(group)
    assert gate_result.group is not None and gate_result.reason == "kept 4 of 6 rollouts"
    assert [rollout.id for rollout in gate_result.group.rollouts] == ["0-0", "0-2", "0-3", "0-4"]
    assert Distinct()(make_group([1.0], failed=[0])).group is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3+4+5=12", "3+4-5=2"),
        ("12*3-30", "12*3-24"),
        ("(3+4)*5", "(3+4)*6"),
        ("3*(4+5)", "3*(4-5)"),
        ("(1+2)*(3+4)", "(1+2)*(3-4)"),
        ("2 * -3", "2 * 3"),
        ("1.5+2", "1.5+25"),
    ],
)
def test_ways_that_differ_anywhere_in_a_chain_are_two(one: str, other: str) -> None:
    kept = Distinct()(saying([one, other, f"so {one} it is"])).group
    assert kept is not None and [rollout.id for rollout in kept.rollouts] == ["0-0", "0-1"]


def test_a_numbered_line_is_no_part_of_a_calculation() -> None:
    assert calculations(saying(["1. 3+4=7\n2. 7*2=14"]).rollouts[0]) == ("3+4", "7*2")


@pytest.mark.parametrize("text", ["1" * 100_000, "(" * 100_000, "1+" * 50_000, "1 " * 50_000, "1.1." * 25_000])
def test_hostile_text_is_read_in_no_time(text: str) -> None:
    begun = time.monotonic()
    calculations(saying([text]).rollouts[0])
    assert time.monotonic() - begun < 1.0
