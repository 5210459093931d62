"""Every advantage of the room under odd draws: finite advantage for each written token, or a refusal that says why."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strop.training.advantages as room
from strop.errors import ConfigurationError
from strop.generate.turn_ops import noted
from strop.recipes.objective.mc_grpo import WithoutMedian
from strop.roles import Advantage
from strop.training.advantages.group_relative import GroupStandard
from strop.types import Group
from tests.building import make_group
from tests.rooms import kinds_of

BY_TURN = {
    "WithBestCloned",
    "ExponentialWeights",
    "HardFiltered",
    "JudgedAndHinted",
    "StepAndEpisode",
}  # these need pay for turns
REQUIRED: dict[str, Any] = {"inner": GroupStandard(), "max_tokens": 64, "teacher": "x"}  # fields without a default


def kinds() -> list[type]:
    """Every public dataclass of the room that is called with groups."""
    return [kind for kind in kinds_of(room, Advantage) if _is_advantage(kind) and kind.__name__ not in BY_TURN]


def _is_advantage(kind: Any) -> bool:
    return (
        isinstance(kind, type)
        and is_dataclass(kind)
        and callable(kind)
        and not kind.__name__.startswith("_")
        and "__call__" in vars(kind)
    )


def made(kind: type) -> Advantage:
    needed = [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]
    advantage: Advantage = kind(**{name: REQUIRED[name] for name in needed})
    return advantage


def prepared(group: Group, seed: int) -> Group:
    """With everything that any advantage may ask for: policy statistics, values, component rewards, noise, a search's
    worth.
    """
    stream = np.random.default_rng(seed)
    median = WithoutMedian()(group).group
    measured = median.rollouts[0].facts if median and median.rollouts else {}
    for rollout in group.rollouts:
        n = rollout.num_tokens
        rollout.rewards = {"one": rollout.reward, "two": float(stream.integers(0, 2))}
        rollout.facts = {"median": 0.0, "median_mad": 0.0, "median_std": 0.0} | measured
        rollout.facts |= {"reference": 0.5, "noise": float(stream.uniform())}
        rollout.values = stream.normal(size=n).astype(np.float32)
        rollout.policy_statistics = {
            "entropy": stream.uniform(size=n).astype(np.float32),
            "logprobs": -stream.uniform(size=n).astype(np.float32),
            "reference_logprobs": -stream.uniform(size=n).astype(np.float32),
            "hidden_after": stream.normal(size=(n, 3)).astype(np.float32),
            "contributions": np.zeros(sum(len(turn.tokens) > 0 for turn in rollout.turns)),
            "turn_advantages": np.zeros(sum(len(turn.tokens) > 0 for turn in rollout.turns)),
            "top 10": stream.uniform(0.01, 0.1, size=(n, 20)).astype(np.float32),
            "teacher_values": stream.normal(size=(n, 3)).astype(np.float32),
        }
        rollout.turns = noted(rollout.turns, "value", stream.uniform(size=n).astype(np.float32))
    return group


@st.composite
def draws(draw: st.DrawFn) -> list[Group]:
    """Equal rewards, single rollouts, huge rewards, failed, pruned or empty rollouts, groups without any."""
    groups = []
    for number in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 5))
        one = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(-1e6, 1e6, width=32), st.just(3.0e30))
        equal = draw(st.booleans())
        rewards = [draw(one)] * size if equal else [draw(one) for _ in range(size)]
        lengths = [draw(st.integers(0, 4)) for _ in range(size)]
        failed, pruned = ([index for index in range(size) if draw(st.integers(0, 3)) == 0] for _ in range(2))
        made_so = make_group(rewards, lengths, failed, number, pruned=pruned)
        groups.append(prepared(made_so, draw(st.integers(0, 99))))
    return groups


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_finite_or_refused(kind: type, data: st.DataObject) -> None:
    groups = data.draw(draws())
    try:
        made(kind)(groups)
    except ConfigurationError as error:
        assert len(str(error)) > 20
        return
    for group in groups:
        for rollout in group.rollouts:
            if rollout in group.scored:
                assert rollout.advantages is not None and len(rollout.advantages) == rollout.num_tokens
                assert rollout.advantages.dtype == np.float32 and np.isfinite(rollout.advantages).all()
            else:
                assert rollout.advantages is None


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_a_pruned_rollout_changes_nobodys_credit(kind: type) -> None:
    """With it and without it, over two batches, so that what is remembered counts as well."""
    found = []
    for pruned in ([], [4]):
        advantage, rewards = made(kind), [1.0, 0.0, 0.0, 1.0, 7.0][: 4 + len(pruned)]
        for seed in range(2):
            group = make_group(rewards, [2, 3, 2, 4, 5][: len(rewards)], pruned=pruned)
            advantage([prepared(group, seed)])
        assert pruned == [] or group.rollouts[4].advantages is None
        assert repr(advantage) == repr(made(kind)) and advantage == made(kind)  # what it has seen is no setting
        advantages = [rollout.advantages for rollout in group.rollouts[:4]]
        found.append([each.tolist() for each in advantages if each is not None])
    assert len(found[0]) == 4 and found[0] == found[1]


def test_the_room_was_found() -> None:
    assert {"GroupStandard", "DecoupledStandard", "Conditional", "Gae"} <= {kind.__name__ for kind in kinds()}
    assert len(kinds()) >= 28
