"""Sibling-GRPO by hand: forks of a tree, each alternative counted once, advantage at the forking token alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strop.recipes.rollout.v_star import SiblingTokens, forks
from strop.recipes.rollout.v_star import advantages_of_sibling_tokens as advantages
from strop.training.advantages.constant import Constant
from strop.training.advantages.group_relative import GroupMean
from strop.types import Group, Rollout
from tests.building import make_group


def tree(paths: list[list[int]], rewards: list[float], prefix: list[int] | None = None, **more: list[int]) -> Group:
    """Rollouts whose completions are these tokens, of which the first `prefix` are a prefix."""
    group = make_group(rewards, [len(path) for path in paths], **more)
    for rollout, path, size in zip(group.rollouts, paths, prefix or [0] * len(paths), strict=True):
        turn = rollout.turns[0]
        rollout.turns = (
            replace(
                turn, prompt=np.array([1, *path[:size]]), tokens=np.array(path[size:]), num_prefix=size,
                logprobs=turn.logprobs[size:], versions=turn.versions[size:],
            ),
        )  # fmt: skip
    return group


def added(rollout: Rollout) -> list[float]:
    assert rollout.advantages is not None
    return rollout.advantages.tolist()


A, B, X, Y = 11, 12, 21, 22


def test_the_papers_tree() -> None:
    """ax = 1, ay = bx = by = 0: a +1, b -1 at the root (0.5 and 0); x +1, y -1 under a; nothing under b."""
    group = tree([[A, X], [A, Y], [B, X], [B, Y]], [1.0, 0.0, 0.0, 0.0])
    plain = tree([[A, X], [A, Y], [B, X], [B, Y]], [1.0, 0.0, 0.0, 0.0])
    SiblingTokens(GroupMean())([group])
    GroupMean()([plain])
    extra = [np.subtract(added(one), added(other)) for one, other in zip(group.rollouts, plain.rollouts, strict=True)]
    # 0.25 / (0.25 + 1e-4) and 0.5 / (0.5 + 1e-4)
    assert extra[0] == pytest.approx([0.9996, 0.9998], abs=1e-4) and extra[1] == pytest.approx(
        [0.9996, -0.9998], abs=1e-4
    )
    assert extra[2] == pytest.approx([-0.9996, 0.0], abs=1e-4) and extra[3] == pytest.approx([-0.9996, 0.0], abs=1e-4)


def test_each_alternative_counts_once_however_many_go_through_it() -> None:
    group = tree([[A, X], [A, X], [A, X], [B, X]], [1.0, 1.0, 0.0, 0.0])
    ((depth, fork),) = forks(group.rollouts)
    assert depth == 0 and {token: len(each) for token, each in fork.items()} == {A: 3, B: 1}
    # means 2/3 and 0, whose mean is 1/3 and spread 1/3
    assert advantages(fork) == {A: pytest.approx(1, abs=1e-3), B: pytest.approx(-1, abs=1e-3)}


def test_only_the_rollout_that_sampled_a_token_gets_its_advantage() -> None:
    group = tree([[A, X, X], [A, Y]], [1.0, 0.0], prefix=[0, 1])
    SiblingTokens(Constant())([group])
    assert added(group.rollouts[0]) == pytest.approx([1, 1 + 1, 1], abs=1e-3), "the fork is its second token"
    assert added(group.rollouts[1]) == pytest.approx([1 - 1], abs=1e-3), "the first is given"
    early = tree([[A, X], [B, X], [A, Y]], [1.0, 0.0, 0.0], prefix=[0, 0, 1])
    SiblingTokens(Constant())([early])
    assert added(early.rollouts[2]) == pytest.approx([1 - 1], abs=1e-3), "no advantage at the root, which it was given"


def test_ends_failures_and_single_children() -> None:
    group = tree([[A], [A, X], [A, Y], [B]], [1.0, 1.0, 0.0, 0.5], failed=[3])
    assert [(depth, sorted(fork)) for depth, fork in forks(group.scored)] == [(1, [X, Y])], "who ended goes nowhere"
    assert forks(tree([[A, X], [A, X]], [1.0, 0.0]).scored) == []
    metrics = SiblingTokens(Constant()).learn([group, tree([[A]], [1.0])])
    assert metrics == {"forks": 0.5, "fork_advantage": pytest.approx(1, abs=1e-3)}
