"""MSSR (strop.recipes.objective.mssr): a running pass rate per task, and an entropy bonus that keeps signs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.errors import ConfigurationError
from strop.recipes.objective.mssr import BetaBaseline
from strop.types import Group
from tests.building import TASK, advantages_of, make_group


def one(reward: float, number: int, task: str, distance: float = 0.0) -> Group:
    """One rollout of one token; the log-probabilities of policy and reference differ by `distance`."""
    group = make_group([reward], number=number)
    rollout = group.rollouts[0]
    rollout.task = replace(TASK, id=task)
    rollout.policy_statistics = {
        "entropy": np.zeros(1, dtype=np.float32),
        "logprobs": np.array([-1.0], dtype=np.float32),
        "reference_logprobs": np.array([-1.0 - distance], dtype=np.float32),
    }
    return group


@pytest.mark.parametrize(("advantage", "entropy", "expected"), [(-1.0, 10.0, -0.5), (0.2, 0.1, 0.24), (0.0, 3.0, 0.0)])
def test_the_entropy_bonus_by_hand(advantage: float, entropy: float, expected: float) -> None:
    assert BetaBaseline().shaped(advantage, np.array([entropy])).tolist() == pytest.approx([expected])


@given(advantage=st.floats(-1e6, 1e6), entropy=st.floats(0, 100))
def test_the_bonus_keeps_signs_and_is_at_most_half(advantage: float, entropy: float) -> None:
    (shaped,) = BetaBaseline().shaped(advantage, np.array([entropy])).tolist()
    assert shaped * advantage >= 0 and abs(shaped - advantage) <= abs(advantage) / 2 * (1 + 1e-9)


def test_the_running_pass_rate_by_hand() -> None:
    """a = b = 4, rho .875, right: 4.5 and 3.5, v = .5625; the first outcome of a task is its first v."""
    advantage = BetaBaseline(rule="constant")
    assert advantage.expected("x") == 0.5
    advantage([one(1.0, 0, "x"), one(0.0, 1, "y")])
    assert advantage.state()["counts"] == {"x": [8.0, 0.0], "y": [0.0, 8.0]}
    assert (advantage.expected("x"), advantage.expected("y")) == (1.0, 0.0)
    advantage([one(0.0, 2, "x")])
    assert advantage.state()["counts"]["x"] == [7.0, 1.0] and advantage.expected("x") == 0.875
    advantage.restore({"counts": {"z": [4.0, 4.0]}, "kls": []})
    advantage([one(1.0, 3, "z")])
    assert advantage.state()["counts"]["z"] == [4.5, 3.5] and advantage.expected("z") == 0.5625


def test_it_reports_the_share_of_rollouts_with_known_tasks() -> None:
    """All siblings of a batch are one task here: unknown in the first, known in the second; no rollout, none known."""
    advantage = BetaBaseline()
    shares = []
    for groups in ([make_group([1.0, 0.0])], [make_group([1.0])], []):
        advantage(groups)
        shares.append(advantage.learn(groups)["known_share"])
    assert shares == [0.0, 1.0, 0.0]


def test_the_baseline_is_read_before_it_learns() -> None:
    # both are compared with .5: +-.5, normalized by their population std .5
    advantage = BetaBaseline()
    groups = [one(1.0, 0, "x"), one(0.0, 1, "y")]
    advantage(groups)
    assert [advantages_of(group)[0] for group in groups] == pytest.approx([1.0, -1.0])


def test_advantages_are_centred_and_the_kl_is_the_mean_over_tokens() -> None:
    """Rewards 1, 1, 0 against .5: mean 1/6, population std sqrt(2) / 3; KLs of two tokens are averaged, not added."""
    advantage = BetaBaseline(entropy_weight=0.0)
    groups = [one(1.0, 0, "x", 0.1), one(1.0, 1, "y", 0.2), one(0.0, 2, "z", 0.3)]
    advantage(groups)
    std = np.sqrt(2.0) / 3
    assert [advantages_of(group)[0] for group in groups] == pytest.approx([1 / 3 / std] * 2 + [-2 / 3 / std])
    assert advantage.state()["kls"] == pytest.approx([np.mean([np.expm1(-d) + d for d in (0.1, 0.2, 0.3)])], rel=1e-4)


@pytest.mark.parametrize(
    ("rule", "at_zero", "at_target", "beyond"),
    [("published", 0.875, 0.96, 0.875), ("rising", 0.96, 0.875, 0.875), ("constant", 0.875, 0.875, 0.875)],
)
def test_decay_rules(rule: str, at_zero: float, at_target: float, beyond: float) -> None:
    advantage = BetaBaseline(rule=rule)
    assert [advantage.decay(kl) for kl in (0.0, 0.01, 0.010001)] == pytest.approx([at_zero, at_target, beyond])


def test_the_kl_is_measured_on_the_batch() -> None:
    """exp(-d) - 1 + d at d = .1 is .00484: rho = .875 + .484 * .085."""
    advantage = BetaBaseline()
    advantage.restore({"counts": {"x": [4.0, 4.0]}, "kls": []})
    advantage([one(1.0, 0, "x", distance=0.1)])
    kl = np.exp(-0.1) - 1 + 0.1
    rho = 0.875 + kl / 0.01 * 0.085
    assert advantage.state()["counts"]["x"] == pytest.approx([4 * rho + 1, 4 * rho], rel=1e-5)


def test_its_state_survives_as_json() -> None:
    advantage, again = BetaBaseline(), BetaBaseline()
    for number in range(3):
        advantage([one(1.0, number, "x", 0.05), one(0.0, number, "y", 0.05)])
    again.restore(json.loads(json.dumps(advantage.state())))
    assert again.expected("x") == advantage.expected("x") > 0.5 and again.state() == advantage.state()


def test_refusals() -> None:
    with pytest.raises(ConfigurationError, match="no rule"):
        BetaBaseline(rule="falling")
    with pytest.raises(ConfigurationError, match="bound > 1"):
        BetaBaseline(bound=1.0)


def test_the_decay_follows_the_mean_kl_of_ten_batches() -> None:
    """Twelve batches of different tasks and KLs: the last one's rho comes from the mean of the latest ten."""
    advantage, kls = BetaBaseline(rule="rising", target_kl=0.1), []
    advantage.restore({"counts": {"11": [4.0, 4.0]}, "kls": []})
    for number in range(12):
        distance = 0.02 * (number + 1)
        advantage([one(1.0, number, str(number), distance)])
        kls.append(np.expm1(-distance) + distance)
    rho = 0.96 - float(np.mean(kls[-10:])) / 0.1 * 0.085
    assert advantage.state()["counts"]["11"] == pytest.approx([4 * rho + 1, 4 * rho], rel=1e-5)
    assert len(advantage.state()["kls"]) == 10


def test_it_keeps_the_10_000_most_recent_tasks() -> None:
    advantage = BetaBaseline()
    advantage._counts = {str(number): (2.0, 1.0) for number in range(10_000)}
    advantage([one(1.0, 0, "0"), one(0.0, 1, "new")])
    assert len(advantage._counts) == 10_000 and "1" not in advantage._counts
    assert {"0", "2", "new"} <= advantage._counts.keys() and advantage._counts["0"][0] > 2.0, (
        "a task that was sampled again is recent"
    )
