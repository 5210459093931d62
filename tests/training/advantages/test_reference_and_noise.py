"""AAPO and NoisyGRPO: strop.recipes.objective.aapo and noise_posterior, and what feeds them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from strop.backends import Completion, Stop
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.rollout_limits import REFERENCE
from strop.recipes.objective.aapo import PairedWithReference, ReferenceMomentum, WithReferenceRollouts
from strop.recipes.objective.noisygrpo import NoiseLevels, NoisePosterior, Noisy
from strop.roles import Agent, Engine
from strop.types import SUCCESS, Group, Origin, Outcome, Rollout, Sampling, Start
from tests.building import TASK, advantages_of, make_group, turn


def beside(rewards: list[float], reference: list[float]) -> Group:
    group = make_group([*rewards, *reference])
    for rollout in group.rollouts[len(rewards) :]:
        rollout.origin = Origin.TEACHER
    kept = PairedWithReference()(group).group
    assert kept is not None
    return kept


@pytest.mark.parametrize(
    ("rewards", "reference", "expected"),
    [([1, 1, 1, 1], [1, 0, 1, 0], [0, 0.28, 0, 0.28]), ([0, 0], [0, 1], [0, -0.2])],
)
def test_a_group_without_contrast_still_trains(
    rewards: list[float], reference: list[float], expected: list[float]
) -> None:
    group = beside(rewards, reference)
    ReferenceMomentum()([group])
    assert advantages_of(group) == pytest.approx(expected)


def test_it_is_added_to_grpos_credit() -> None:
    group = beside([1.0, 0.0], [0.0, 0.0])
    ReferenceMomentum(epsilon=0.0)([group])
    assert advantages_of(group) == pytest.approx([0.70711 + 0.28, -0.70711], abs=1e-5)


def test_pairs_are_by_place_and_nobody_takes_anothers_partner() -> None:
    """The first of three failed, and so did the third's partner: the second keeps its own, and the third has none."""
    group = make_group([1.0, 0.5, 1.0, 0.0, 0.25, 0.75], failed=[0, 5])
    for rollout in group.rollouts[3:]:
        rollout.origin = Origin.TEACHER
    kept = PairedWithReference()(group).group
    assert kept is not None
    assert [(t.id, t.facts, t.rewards) for t in kept.rollouts] == [
        ("0-1", {SUCCESS: 0.5, "reference": 0.25}, {}),
        ("0-2", {SUCCESS: 1.0}, {}),
    ]
    ReferenceMomentum(epsilon=0.0)([kept])
    # mean .75 and std .3536 are of both that count; +.25 is ahead of the partner
    assert advantages_of(kept) == pytest.approx([-0.70711 + 0.25, 0.70711], abs=1e-5)


def test_without_a_pair_there_is_nothing_to_compare() -> None:
    assert PairedWithReference()(make_group([1.0])).group is None
    with pytest.raises(ConfigurationError, match="add the gate PairedWithReference"):
        ReferenceMomentum()([make_group([1.0, 0.0])])


def noised(rewards: list[float]) -> Group:
    group = make_group(rewards)
    for rollout, level in zip(group.rollouts, (0.0, 0.3, 0.6, 0.9), strict=True):
        rollout.facts["noise"] = level
    return group


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_without_contrast_the_cleaner_prompt_is_preferred(reward: float) -> None:
    group = noised([reward] * 4)
    NoisePosterior(epsilon=0.0)([group])
    assert advantages_of(group) == pytest.approx([1.1619, 0.3873, -0.3873, -1.1619], abs=5e-5)


def test_mixed_rewards_by_hand() -> None:
    group = noised([1.0, 0.0, 1.0, 0.0])
    NoisePosterior(epsilon=0.0)([group])
    assert advantages_of(group) == pytest.approx([1.0384, -0.6494, 0.6494, -1.0384], abs=5e-5)


def test_epsilon_stands_beside_every_spread() -> None:
    """Equal rewards, noise 0 and 1: zn = +-.5 / (.7071 + 1), K = .9091, u = K zn, A = u / (std u + 1)."""
    group = make_group([1.0, 1.0])
    for rollout, level in zip(group.rollouts, (0.0, 1.0), strict=True):
        rollout.facts["noise"] = level
    NoisePosterior(epsilon=1.0)([group])
    u = 0.1 / 0.11 * 10 * 0.1 * 0.5 / (np.sqrt(0.5) + 1)
    expected = u / (u * np.sqrt(2) + 1)
    assert advantages_of(group) == pytest.approx([expected, -expected])


def test_the_gain_falls_as_rewards_spread() -> None:
    gain = NoisePosterior().gain
    assert gain(np.array([1.0, 1.0])) == pytest.approx(0.9091, abs=5e-5)
    assert gain(np.array([1.0, 0.0, 1.0, 0.0])) == pytest.approx(0.2256, abs=5e-5)
    spread = np.array([0.0, 0.5 * np.sqrt(2)])  # variance .25
    assert gain(spread) == pytest.approx(0.2778, abs=5e-5)
    with pytest.raises(ConfigurationError, match="use the strategy NoiseLevels"):
        NoisePosterior()([make_group([1.0, 0.0])])


def test_noise_is_reproducible_spares_the_end_and_level_0_is_clean() -> None:
    engine = Noisy(Scripted({}), strength=1.0)
    prompt = np.arange(200)
    assert engine.disturbed(prompt, 3, 0.0).tolist() == prompt.tolist()
    once, again = engine.disturbed(prompt, 3, 0.6), engine.disturbed(prompt, 3, 0.6)
    assert once.tolist() == again.tolist() != engine.disturbed(prompt, 4, 0.6).tolist()
    assert once[-2:].tolist() == [198, 199]
    changed = float((once != prompt).mean())
    assert 0.45 < changed < 0.7
    longer = engine.disturbed(np.arange(230), 3, 0.6)
    assert longer[:198].tolist() == once[:198].tolist()  # a prompt that grew is disturbed as it was
    with pytest.raises(ConfigurationError, match="first is 0"):
        Noisy(Scripted({}), levels=(0.3,))


@dataclass
class Recorder(Engine):
    """An engine that says which of two it is, and what it was asked."""

    name: int
    asked: list[tuple[list[int], int]] = field(default_factory=list)

    async def sample(self, prompt: np.ndarray, sampling: Sampling, key: int) -> Completion:
        self.asked.append((prompt.tolist(), key))
        return Completion(np.array([self.name]), np.zeros(1, np.float32), np.zeros(1, np.int64), Stop.STOP)


def test_requests_in_the_references_policy_go_to_it() -> None:
    own, reference = Recorder(1), Recorder(2)
    engine = WithReference(own, reference)  # type: ignore[arg-type]
    asyncio.run(engine.sample(np.array([7]), Sampling(), 11))
    asyncio.run(engine.sample(np.array([7]), Sampling(policy_name=REFERENCE), 12))
    assert own.asked == [([7], 11)] and reference.asked == [([7], 12)]


async def played(start: Start, agent: Agent | None = None) -> Rollout:
    rollout = Rollout(start.id, TASK, (turn(2),), Outcome.FINISHED, start.origin)
    return replace(rollout, comparison_group=start.policy_name)


def test_strategies_choose_who_speaks() -> None:
    group = Group(0, TASK, [])
    starts = [Start(str(i), i) for i in range(4)]
    pairs = asyncio.run(WithReferenceRollouts()(group, starts, played))
    assert [rollout.origin for rollout in pairs] == [Origin.POLICY] * 2 + [Origin.TEACHER] * 2
    assert [rollout.comparison_group for rollout in pairs] == ["", "", REFERENCE, REFERENCE]
    levels = asyncio.run(NoiseLevels()(group, starts, played))
    assert [rollout.facts["noise"] for rollout in levels] == [0.0, 0.3, 0.6, 0.9]
    assert [rollout.comparison_group for rollout in levels] == [f"noise:{level}" for level in range(4)]
    with pytest.raises(ConfigurationError, match="even number per group, got 3"):
        asyncio.run(WithReferenceRollouts()(group, starts[:3], played))
