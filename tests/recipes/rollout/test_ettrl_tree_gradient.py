"""Over all trees of a tiny policy, forks and advantage along the tree have the gradient that enumeration of states
gives.

Two tokens, four of them in a completion: 15 states, 16 completions. The trees are played by the strategy itself, one by
one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.policy import Policy
from strop.recipes.rollout.ettrl import EntropyForks
from strop.roles import Advantage
from strop.training.advantages.along_tree import AlongTree
from strop.training.requirements import PolicyStatistic
from strop.types import Group, Rollout
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions

DEPTH = 4
COMPLETIONS = ["".join(letters) for letters in itertools.product("ab", repeat=DEPTH)]
STATES = ["".join(letters) for size in range(DEPTH) for letters in itertools.product("ab", repeat=size)]
REWARDS = dict(zip(COMPLETIONS, np.random.default_rng(1).random(len(COMPLETIONS)).tolist(), strict=True))


@dataclass(frozen=True)
class Paid(Advantage):
    """What was paid."""

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            rollout.set_advantage(rollout.reward)


def logits() -> Tensor:
    """Of both tokens in each state: [15, 2]."""
    return torch.randn(len(STATES), 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).requires_grad_()


def probability(theta: Tensor, completion: str, since: int = 0) -> float:
    """Of the tokens of a completion from here on, given those before."""
    table = theta.detach().softmax(-1)
    places = [
        (STATES.index(completion[:place]), "ab".index(completion[place])) for place in range(since, len(completion))
    ]
    return float(np.prod([float(table[place]) for place in places])) if places else 1.0


def warning(theta: Tensor, state: str) -> float:
    probabilities = theta.detach().softmax(-1)[STATES.index(state)]
    return float(-(probabilities * probabilities.log()).sum())


def worth(theta: Tensor, state: str) -> float:
    """The expected reward of all that may follow."""
    if len(state) == DEPTH:
        return REWARDS[state]
    table = theta.detach().softmax(-1)[STATES.index(state)]
    return sum(float(table[index]) * worth(theta, state + letter) for index, letter in enumerate("ab"))


def fork(theta: Tensor, completion: str) -> int:
    return max(range(DEPTH), key=lambda place: warning(theta, completion[:place]))


def by_states(theta: Tensor) -> Tensor:
    """The gradient from what each (state, token) is credited with in expectation: [15, 2]."""
    advantage = np.zeros((len(STATES), 2))  # of each token in each state, over all trees
    for root in COMPLETIONS:
        likely, at = probability(theta, root), fork(theta, root)
        for place in range(DEPTH):
            shared = worth(theta, root[:at]) if place < at else 0.0
            advantage[STATES.index(root[:place]), "ab".index(root[place])] += likely * (REWARDS[root] + shared)
        for state in (state for state in STATES if len(state) >= at and state[:at] == root[:at]):
            reached = likely * probability(theta, state, at)
            for index, letter in enumerate("ab"):
                drawn = float(theta.detach().softmax(-1)[STATES.index(state), index])
                advantage[STATES.index(state), index] += reached * drawn * worth(theta, state + letter)
    total = torch.tensor(advantage)
    return total - total.sum(1, keepdim=True) * theta.detach().softmax(-1)  # d log softmax


def trees(theta: Tensor) -> Iterator[tuple[str, str]]:
    """All roots with all that may branch off."""
    for root in COMPLETIONS:
        rest = DEPTH - fork(theta, root)
        yield from ((root, "".join(letters)) for letters in itertools.product("ab", repeat=rest))


def played(policy: Policy, theta: Tensor, root: str, end: str) -> list[Rollout]:
    async def note(groups: list[Group], needs: frozenset[PolicyStatistic]) -> None:
        for rollout in groups[0].scored:
            entropies = [warning(theta, rollout.completion[:place]) for place in range(DEPTH)]
            rollout.policy_statistics["entropy"] = np.array(entropies)

    async def score(group: Group) -> None:
        return None

    engine = Recording([root, end])
    play = GroupPlayer(Group(0, TASK, []), replace(policy, engine=engine), (Completions(1),), Chat(), 0, score, note)
    return asyncio.run(EntropyForks(1, 1)(play.group, [play.another()], play))


def test_the_expected_gradient_over_all_trees_is_that_of_the_states(tmp_path: Path) -> None:
    policy, theta = policy_of(save_folder(tmp_path), Recording([]), max_tokens=DEPTH), logits()
    table = theta.log_softmax(-1)
    total, mass = theta.new_zeros(()), 0.0
    for root, end in trees(theta):
        rollouts = played(policy, theta, root, end)
        at = fork(theta, root)
        assert [each.completion for each in rollouts] == [root, root[:at] + end]
        likely = probability(theta, root) * probability(theta, root[:at] + end, at)
        group = Group(0, TASK, [replace(each, reward=REWARDS[each.completion]) for each in rollouts])
        AlongTree(Paid())([group])
        mass += likely
        for each in group.rollouts:
            assert each.advantages is not None
            first = each.turns[0].num_prefix
            for place, value in enumerate(each.advantages.tolist(), first):
                assert each.turns[0].whole[place] == ids(each.completion)[place]
                total = (
                    total
                    + likely * value * table[STATES.index(each.completion[:place]), "ab".index(each.completion[place])]
                )
    assert mass == pytest.approx(1.0)
    assert len({fork(theta, root) for root in COMPLETIONS}) > 1, "forks are at several depths"
    (gradient,) = torch.autograd.grad(total, theta)
    torch.testing.assert_close(gradient, by_states(theta), rtol=0, atol=1e-6)  # advantage is kept in float32
