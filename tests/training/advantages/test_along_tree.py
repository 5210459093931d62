"""Advantage along trees: numbers by hand, every rollout trained whole, and enumeration of all trees of a tiny
policy.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.capabilities import learners_in
from strop.errors import ConfigurationError
from strop.generate.turn_ops import as_prefix, cut
from strop.recipes.objective.nsr_psr import Signed
from strop.recipes.rollout.ettrl import EntropyReshaped
from strop.roles import Advantage
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_relative import GroupMean, GroupStandard
from strop.training.arithmetic.tree_lineage import lines
from strop.training.learners import teach
from strop.types import Group, Outcome, Rollout
from tests.building import TASK, make_group
from tests.training.tiny import make_turn
from tests.training.tiny_policy import REWARDS, SEQUENCES, exact_gradient, parameters, probability, token_logprobs


def rollout(name: str, *completions: Sequence[int], reward: float = 0.0) -> Rollout:
    turns = tuple(make_turn([9], list(tokens)) for tokens in completions)
    return Rollout(name, TASK, turns, Outcome.FINISHED, reward=reward)


def branch(name: str, parent: Rollout, at: int, *completions: Sequence[int], reward: float = 0.0) -> Rollout:
    """From the parent's first `at` written tokens: the first completion goes on inside the last of them, or begins
    anew.
    """
    *before, last = as_prefix(cut(parent.turns, at)) or (make_turn([9], []),)
    own = [make_turn([9], list(tokens)) for tokens in completions[1:]]
    begun = replace(make_turn([9], list(completions[0])), prompt=last.prompt, num_prefix=last.num_prefix)
    made = Rollout(name, TASK, (*before, begun, *own), Outcome.FINISHED, reward=reward)
    made.parent = parent.id
    return made


def tree() -> Group:
    """A root of four tokens, branches at 1 and 3, and one more from the second token of the first branch."""
    root = rollout("root", [1, 2, 3, 4], reward=1.0)
    early = branch("early", root, 1, [2, 6, 7], reward=0.0)  # draws the same token as the root did, then goes elsewhere
    late = branch("late", root, 3, [8], reward=0.5)
    twig = branch("twig", early, 2, [5, 5], reward=2.0)
    return Group(0, TASK, [twig, root, early, late])  # in any order


def test_which_tokens_an_rollout_goes_through() -> None:
    found = lines(tree().scored)
    assert found["root"] == {"root": 4} and found["late"] == {"root": 3, "late": 1}
    assert found["early"] == {"root": 1, "early": 3}
    assert found["twig"] == {"root": 1, "early": 2, "twig": 2}, "the root's second token is not the branch's"


@dataclass(frozen=True)
class Paid(Advantage):
    """The reward itself."""

    def __call__(self, groups: Sequence[Group]) -> None:
        for each in (each for group in groups for each in group.scored):
            each.set_advantage(each.reward)


@pytest.mark.parametrize(
    ("rule", "root", "early"),
    [
        # through the root's first token go all (1 + 0 + .5 + 2), through the next two the root and the late branch
        ("sum", [3.5, 1.5, 1.5, 1.0], [2.0, 2.0, 0.0]),
        ("mean", [3.5 / 4, 0.75, 0.75, 1.0], [1.0, 1.0, 0.0]),
    ],
)
def test_numbers_by_hand(rule: str, root: list[float], early: list[float]) -> None:
    group = tree()
    AlongTree(Paid(), rule)([group])
    found = {each.id: each.advantages for each in group.scored}
    assert found["root"].tolist() == pytest.approx(root) and found["early"].tolist() == pytest.approx(early)  # type: ignore[union-attr]
    assert found["late"].tolist() == [0.5] and found["twig"].tolist() == [2.0, 2.0]  # type: ignore[union-attr]
    assert AlongTree(Paid()).learn([group]) == {"shared_token_share": pytest.approx(5 / 10)}


def test_what_does_not_count_gives_and_gets_nothing() -> None:
    group = tree()
    for each in group.rollouts:
        if each.id in ("root", "late"):
            each.outcome = Outcome.FAILED if each.id == "root" else Outcome.PRUNED
    AlongTree(Paid())([group])
    found = {each.id: each.advantages for each in group.rollouts}
    assert found["root"] is None and found["late"] is None
    assert found["early"].tolist() == [2.0, 2.0, 0.0], "its parent is not there, and it is credited all the same"  # type: ignore[union-attr]


def test_a_branch_in_a_later_turn_shares_the_turns_before() -> None:
    root = rollout("root", [1, 2], [3, 4, 5], reward=1.0)
    inside = branch("inside", root, 3, [7], [8], reward=2.0)
    between = branch("between", root, 2, [], [6], reward=4.0)
    group = Group(0, TASK, [root, inside, between])
    assert [len(turn.tokens) for turn in inside.turns] == [0, 1, 1]
    AlongTree(Paid())([group])
    assert root.advantages is not None and root.advantages.tolist() == [7.0, 7.0, 3.0, 1.0, 1.0]
    assert inside.advantages is not None and inside.advantages.tolist() == [2.0, 2.0]


def test_words_put_into_its_mouth_are_nobodys() -> None:
    root = rollout("root", [1, 2, 3, 4], reward=1.0)
    led = branch("led", root, 2, [9], reward=1.0)
    (turn,) = led.turns
    led.turns = (replace(turn, prompt=np.append(turn.prompt, [7, 7]), num_prefix=turn.num_prefix + 2),)
    assert lines([root, led])["led"] == {"root": 2, "led": 1}
    later = branch("later", root, 2, [9], [8], reward=1.0)
    first, second = later.turns
    later.turns = (first, replace(second, prompt=np.append(second.prompt, [3]), num_prefix=1))  # as the root went on
    assert lines([root, later])["later"] == {"root": 2, "later": 2}


def test_without_branches_it_is_what_is_within() -> None:
    group, plain = make_group([1.0, 0.0, 0.5], lengths=[3, 1, 2]), make_group([1.0, 0.0, 0.5], lengths=[3, 1, 2])
    AlongTree(GroupMean())([group])
    GroupMean()([plain])
    for one, other in zip(group.scored, plain.scored, strict=True):
        assert one.advantages is not None and other.advantages is not None
        assert one.advantages.tolist() == other.advantages.tolist()
    assert AlongTree(GroupMean()).learn([group]) == {"shared_token_share": 0.0}


def test_it_refuses_what_it_cannot_share() -> None:
    @dataclass(frozen=True)
    class Uneven(Advantage):
        def __call__(self, groups: Sequence[Group]) -> None:
            for each in (each for group in groups for each in group.scored):
                each.advantages = np.arange(each.num_tokens, dtype=np.float32)

    with pytest.raises(ConfigurationError, match="needs one advantage per rollout, got 0 to"):
        AlongTree(Uneven())([tree()])
    with pytest.raises(ConfigurationError, match="no rule 'summ'"):
        AlongTree(Signed(), "summ")


def test_the_sum_is_the_gradient_of_training_every_rollout_whole() -> None:
    """Each token has a log-probability of its own, by what stands before it; paths are trained one by one."""
    group = tree()
    AlongTree(GroupStandard())([group])
    rewards = {each.id: each.reward for each in group.scored}
    spread, middle = np.std(list(rewards.values()), ddof=1), np.mean(list(rewards.values()))
    paths = {"root": [1, 2, 3, 4], "early": [1, 2, 6, 7], "late": [1, 2, 3, 8], "twig": [1, 2, 6, 5, 5]}
    owners = {
        "root": ["root"] * 4,
        "early": ["root", *["early"] * 3],
        "late": [*["root"] * 3, "late"],
        "twig": ["root", "early", "early", "twig", "twig"],
    }
    weights: dict[tuple[str, ...], float] = {}
    for name, path in paths.items():
        for end in range(len(path)):
            place = (owners[name][end], *map(str, path[: end + 1]))
            weights[place] = weights.get(place, 0.0) + (rewards[name] - middle) / (spread + 1e-6)
    given_to = {
        (each.id, *map(str, paths[each.id][: len(paths[each.id]) - each.num_tokens + index + 1])): float(value)
        for each in group.scored
        if each.advantages is not None
        for index, value in enumerate(each.advantages)
    }
    assert given_to == {place: pytest.approx(weight, abs=1e-6) for place, weight in weights.items()}


def test_every_leaf_counts_as_an_rollout_of_the_policy() -> None:
    """Over all trees of a root and a branch at its second token, the gradient is twice that of the expected reward."""
    theta = parameters(3)
    total = theta.new_zeros(())
    for root, (last,) in itertools.product(SEQUENCES, itertools.product(range(3))):
        other = (root[0], last)
        weight = probability(theta, root) * token_logprobs(theta, other)[1].exp()
        leaf = rollout("root", root, reward=REWARDS[root])
        twig = branch("twig", leaf, 1, [last], reward=REWARDS[other])
        AlongTree(Paid())([Group(0, TASK, [leaf, twig])])
        total = total + weight.detach() * _gain(theta, [(leaf, root, 0), (twig, other, 1)])
    gradient = torch.autograd.grad(total, theta)[0]
    torch.testing.assert_close(gradient, 2 * exact_gradient(theta), rtol=0, atol=1e-6)  # advantage is kept in float32


def _gain(theta: Tensor, written: list[tuple[Rollout, tuple[int, ...], int]]) -> Tensor:
    """Advantage times log-probability, over the tokens that each rollout wrote itself."""
    parts = []
    for each, path, first in written:
        assert each.advantages is not None
        advantage = torch.tensor(each.advantages.tolist(), dtype=torch.float64)
        parts.append((advantage * token_logprobs(theta, path)[first:]).sum())
    return torch.stack(parts).sum()


# ---- reshaped by entropy


def doubting(rewards: Sequence[float], entropies: Sequence[Sequence[float]]) -> Group:
    group = make_group(rewards, lengths=[len(each) for each in entropies])
    for each, noted in zip(group.rollouts, entropies, strict=True):
        each.policy_statistics["entropy"] = np.array(noted, dtype=np.float32)
    return group


def test_less_warning_counts_more() -> None:
    # means 0.2, 0.6 and 0.4, the group's is 0.4: weights 1.5, 0.5 and 1; advantage of the rewards 1, 0, 0.5 is .5, -.5,
    # 0
    group = doubting([1.0, 0.0, 0.5, 7.0], [[0.2], [0.2, 1.0], [0.4, 0.4, 0.4], [9.0]])
    group.rollouts[3].outcome = Outcome.FAILED
    EntropyReshaped(GroupMean())([group])
    found = [None if each.advantages is None else each.advantages.tolist() for each in group.rollouts]
    assert found == [[pytest.approx(0.75)], [pytest.approx(-0.25)] * 2, [0.0] * 3, None]
    assert EntropyReshaped(GroupMean()).learn([group]) == {"reshaped": pytest.approx(1 / 3)}
    both = teach(learners_in(AlongTree(EntropyReshaped(GroupMean()))), [group])
    assert both == {"shared_token_share": 0.0, "reshaped": pytest.approx(1 / 3)}


def test_weights_are_one_on_average_and_never_turn_a_sign() -> None:
    calm = doubting([1.0] * 4, [[0.5], [0.3, 0.1], [0.2], [0.8]])
    EntropyReshaped(Paid())([calm])
    weights = [float(each.advantages[0]) for each in calm.scored if each.advantages is not None]
    assert np.mean(weights) == pytest.approx(1.0) and np.ptp(weights) > 0.5
    wild = doubting([1.0] * 4, [[4.0], [0.0], [0.0], [0.0]])  # four times the mean: 1 - 3
    EntropyReshaped(Paid())([wild])
    assert [each.advantages.tolist() for each in wild.scored] == [[0.0], [2.0], [2.0], [2.0]]  # type: ignore[union-attr]


def test_nobody_in_warning_and_nothing_written_change_nothing() -> None:
    sure = doubting([1.0, 0.0], [[0.0], [0.0, 0.0]])
    EntropyReshaped(GroupMean())([sure])
    assert [each.advantages.tolist() for each in sure.scored] == [[0.5], [-0.5, -0.5]]  # type: ignore[union-attr]
    silent = doubting([1.0, 0.0, 0.0], [[0.1], [], [0.3]])
    EntropyReshaped(Paid())([silent])
    assert [each.advantages.tolist() for each in silent.scored] == [[1.5], [], [0.0]]  # type: ignore[union-attr]
    assert EntropyReshaped(Paid()).learn([silent]) == {"reshaped": pytest.approx(1 / 3)}, "1.5, 1 and 0.5"
    assert EntropyReshaped(Paid()).learn([]) == {"reshaped": 0.0}
    with pytest.raises(ConfigurationError, match="rollout 0-0 has no policy statistic entropy"):
        EntropyReshaped(GroupMean())([make_group([1.0, 0.0])])


def test_the_entropy_of_a_branch_is_that_of_its_whole_completion() -> None:
    root = rollout("root", [1, 2], reward=1.0)
    twig = branch("twig", root, 1, [3], reward=1.0)
    root.policy_statistics["entropy"], twig.policy_statistics["entropy"] = np.array([0.9, 0.1]), np.array([0.3])
    EntropyReshaped(Paid())([Group(0, TASK, [root, twig])])
    # 0.5 and (0.9 + 0.3) / 2 = 0.6, the mean is 0.55
    assert root.advantages is not None and twig.advantages is not None
    assert root.advantages.tolist() == [pytest.approx(2 - 0.5 / 0.55)] * 2
    assert twig.advantages.tolist() == [pytest.approx(2 - 0.6 / 0.55)]
