"""NudgeRL's advantage within and between contexts: numbers by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from strop.recipes import build, recipe_named
from strop.recipes.rollout.nudgerl import ByContext
from strop.training.batch import ORIGINS
from strop.training.objective import Objective
from strop.training.reductions.means import WithTwins
from strop.types import Group, Origin, Outcome
from tests.building import advantages_of, make_batch, make_group, say, written


def contexted(rewards: Sequence[float], contexts: Sequence[int], **changes: Sequence[int]) -> Group:
    group = make_group(rewards, **changes)  # type: ignore[arg-type]
    for rollout, context in zip(group.rollouts, contexts, strict=True):
        rollout.facts = {"context": float(context)}
    return group


def with_twin(group: Group, place: int) -> Group:
    parent = group.rollouts[place]
    again = replace(parent, id=f"{parent.id}'", origin=Origin.REPLAYED, parent=parent.id)
    return replace(group, rollouts=[*group.rollouts, again])


def test_by_hand() -> None:
    """Means: 2/3 of all, 1 of the first context, 1/2 of the second; the last two rollouts have none."""
    group = contexted([1, 1, 1, 0, 0, 1], [1, 1, 2, 2, 0, 0])
    raw = [0.366667, 0.366667, 0.5 - 0.183333, -0.5 - 0.183333, -0.666667, 0.333333]
    mean = sum(raw) / 6
    spread = (sum((value - mean) ** 2 for value in raw) / 6) ** 0.5
    ByContext(1.1)([group])
    assert advantages_of(group) == pytest.approx([(value - mean) / (spread + 1e-5) for value in raw], abs=1e-5)
    metrics = ByContext(1.1).learn([group])
    # |mean of the context - mean of all|: 1/3 twice, 1/6 twice, 0 twice; rewards 3/4 with and 1/2 without
    assert metrics == {"between_contexts": pytest.approx(1 / 6), "context_gain": pytest.approx(0.25)}


def test_with_weight_1_it_is_grpo_with_the_spread_of_a_population() -> None:
    rewards = [1.0, 0.5, 0.0, 0.0, 1.0]
    group = contexted(rewards, [1, 2, 2, 0, 1])
    ByContext(1.0)([group])
    mean = 0.5
    spread = (sum((reward - mean) ** 2 for reward in rewards) / 5) ** 0.5
    assert advantages_of(group) == pytest.approx([(reward - mean) / (spread + 1e-5) for reward in rewards], abs=1e-6)


def test_a_twin_has_its_parents_advantage_and_is_in_no_mean() -> None:
    rewards, contexts = [1.0, 0.0, 0.0], [1, 1, 0]
    alone, twinned = contexted(rewards, contexts), with_twin(contexted(rewards, contexts), 0)
    for group in (alone, twinned):
        ByContext()([group])
    assert advantages_of(twinned) == [*advantages_of(alone), advantages_of(alone)[0]]
    assert ByContext().learn([twinned]) == ByContext().learn([alone])


def test_what_does_not_count_is_in_no_mean() -> None:
    group = contexted([1.0, 0.0, 0.0, 9.0, 9.0], [1, 1, 0, 1, 2], failed=[3], pruned=[4])
    ByContext()([group])
    few = contexted([1.0, 0.0, 0.0], [1, 1, 0])
    ByContext()([few])
    assert advantages_of(group) == [*advantages_of(few), None, None]


def test_a_twin_whose_parent_does_not_count_gets_nothing() -> None:
    """A judge may fail for one of them and not for the other."""
    group = with_twin(contexted([1.0, 0.0, 1.0], [1, 1, 0]), 2)
    group.rollouts[2].outcome = Outcome.FAILED
    ByContext(1.0)([group])
    half = 0.5 / (0.5 + 1e-5)
    assert advantages_of(group) == [pytest.approx(half), pytest.approx(-half), None, 0.0]


def test_equal_rewards_give_no_advantage() -> None:
    group = contexted([0.1] * 3, [1, 2, 0])
    nothing = contexted([1.0], [1], failed=[0])
    ByContext()([group, nothing])
    assert advantages_of(group) == [0.0] * 3 and advantages_of(nothing) == [None]
    assert ByContext().learn([nothing]) == {"between_contexts": 0.0, "context_gain": 0.0}


def test_twins_have_a_share_and_no_place_in_the_count() -> None:
    """Rollouts made of 2 and 4 tokens, and a twin of the second: each is a mean over two rollouts."""
    group = with_twin(make_group([1.0, 0.0, 0.0], [2, 4, 3], failed=[2]), 1)
    shares = WithTwins()([group])
    found = {name: (len(share), float(share[0])) for name, share in shares.items()}
    assert found == {"0-0": (2, 0.25), "0-1": (4, 0.125), "0-1'": (4, 0.125)}
    assert WithTwins().mass([group]) == 2.0 and shares["0-0"].dtype == np.float32
    empty = WithTwins()([make_group([1.0, 0.0], [0, 1])])
    assert len(empty["0-0"]) == 0 and empty["0-1"].tolist() == [1.0], "one without tokens is not counted"


def test_both_losses_of_the_recipe() -> None:
    """At ratio 1: a plain rollout is weighted by A * (1 + .1), one behind its context by A, its twin by A * .1."""
    run = build(recipe_named("nudgerl"), {})
    batch, output = (
        make_batch([[-1.0], [-2.0], [-2.0]], [2.0, 3.0, 3.0], share=[[0.5]] * 3),
        say([[-1.0], [-2.0], [-4.0]]),
    )
    origins = (Origin.POLICY, Origin.GUIDED, Origin.REPLAYED)
    batch.origins = torch.tensor([ORIGINS.index(each) for each in origins])
    batch.versions = torch.where(batch.rollouts == 2, -1, batch.versions)
    Objective(run.losses, run.correction)(output, batch)[0].backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-1.1, -1.5, -0.15])
