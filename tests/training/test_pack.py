"""Packing puts every number on its own token, and never tears a rollout or a group apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.pack import check_advantages, pack
from strop.training.reductions.means import SequenceMean, TokenMean
from strop.types import Group, Outcome
from tests.training.tiny import make_rollout, make_turn, random_groups


def test_two_turns_and_a_fresh_one_laid_out_by_hand() -> None:
    rollout = make_rollout(
        "a",
        [
            make_turn([5, 6], [7, 8], version=3, temperature=0.5),
            make_turn([9], [10], version=4),
            make_turn([11, 12], [13], fresh=True, version=5, temperature=0.0),
        ],
    )
    rollout.advantages = np.array([1, 2, 3, 4], dtype=np.float32)
    rollout.returns = np.array([5, 6, 7, 8], dtype=np.float32)
    rollout.reward = 0.25
    (batch,) = pack([Group(7, rollout.task, [rollout])], SequenceMean(), 6, 100)
    assert batch.tokens.tolist() == [5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert batch.positions.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2]
    assert batch.segments.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert batch.trainable.int().tolist() == [0, 0, 1, 1, 0, 1, 0, 0, 1]
    assert batch.advantages.tolist() == [0, 0, 1, 2, 0, 3, 0, 0, 4]
    assert batch.returns is not None and batch.returns.tolist() == [0, 0, 5, 6, 0, 7, 0, 0, 8]
    assert batch.values is None
    assert batch.versions.tolist() == [-1, -1, 3, 3, -1, 4, -1, -1, 5]
    assert batch.temperature.tolist() == [1, 1, 0.5, 0.5, 1, 1, 1, 1, 1]  # greedy counts as 1
    assert batch.behavior_logprobs.tolist() == pytest.approx([0, 0, -0.1, -0.2, 0, -0.1, 0, 0, -0.1])
    assert batch.share.tolist() == [0, 0, 0.25, 0.25, 0, 0.25, 0, 0, 0.25]
    assert batch.rewards.tolist() == [0.25]
    assert (batch.group_numbers, batch.rollout_ids, batch.task_ids) == ((7,), ("a",), ("task",))
    assert (batch.version, batch.step_tokens) == (6, 4)


@pytest.mark.parametrize("max_tokens", [1, 13, 30, 10_000])
def test_every_split_holds_the_same_tokens_in_the_same_order(max_tokens: int) -> None:
    groups = random_groups()
    batches = pack(groups, TokenMean(), 0, max_tokens)
    assert [id for batch in batches for id in batch.rollout_ids] == [t.id for g in groups for t in g.rollouts]
    for batch in batches:
        assert len(batch.tokens) <= max_tokens or batch.num_rollouts == 1
        assert batch.rollouts.unique().tolist() == list(range(batch.num_rollouts))
        assert batch.groups[0] == 0 and batch.segments[0] == 0
        assert [batch.group_numbers[g] for g in batch.groups.tolist()] == [int(i[0]) for i in batch.rollout_ids]
    assert sum(float(batch.share.sum()) for batch in batches) == pytest.approx(1)
    for batch, following in pairwise(batches):  # nothing that would have fitted was left for the next
        assert len(batch.tokens) + int((following.rollouts == 0).sum()) > max_tokens


def test_a_group_stays_whole_where_a_loss_compares_siblings() -> None:
    groups = random_groups(4)
    batches = pack(groups, TokenMean(), 0, 1, scope="group")
    assert [batch.group_numbers for batch in batches] == [(0,), (1,), (2,), (3,)]
    assert all(batch.num_rollouts == 4 for batch in batches)


def test_what_the_env_failed_and_what_is_empty_is_left_out() -> None:
    kept, failed, empty = (make_rollout(name, [make_turn([1], [2, 3])]) for name in ("kept", "failed", "empty"))
    failed.outcome, failed.advantages = Outcome.FAILED, None
    empty.turns = (make_turn([1], []),)
    (batch,) = pack([Group(0, kept.task, [failed, kept, empty])], TokenMean(), 0, 100)
    assert batch.rollout_ids == ("kept",)
    assert batch.share.sum() == 1
    assert pack([Group(0, kept.task, [failed])], TokenMean(), 0, 100) == []


def test_missing_or_misshapen_credit_is_an_error_with_numbers() -> None:
    good, bad = make_rollout("good", [make_turn([1], [2])]), make_rollout("bad", [make_turn([1], [2, 3])])
    group = Group(0, good.task, [good, bad])
    bad.advantages = None
    with pytest.raises(ConfigurationError, match="bad of task task has 2 completion tokens and 0 advantages; 1 of 2"):
        pack([group], TokenMean(), 0, 100)
    bad.advantages = np.ones(3, dtype=np.float32)
    with pytest.raises(ConfigurationError, match="has 2 completion tokens and 3 advantages"):
        pack([group], TokenMean(), 0, 100)
    bad.set_advantage(1.0)
    good.returns = np.ones(1, dtype=np.float32)
    with pytest.raises(ConfigurationError, match="2 completion tokens and 0 returns"):
        pack([group], TokenMean(), 0, 100)


def test_a_token_that_nothing_predicts_cannot_be_trained() -> None:
    rollout = make_rollout("a", [make_turn([1], [2]), make_turn([], [3], fresh=True)])
    with pytest.raises(ConfigurationError, match="no prompt before its first completion token"):
        pack([Group(0, rollout.task, [rollout])], TokenMean(), 0, 100)


class Mistaken(Advantage):
    """Sets what is no array of tokens."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __call__(self, groups: list[Group]) -> None:
        for rollout in groups[0].rollouts:
            rollout.advantages = self.value  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("value", "said"), [(1.0, "float 1.0"), (np.ones(3), r"ndarray of shape \(3,\)"), ([1.0, 2.0], "list")]
)
def test_an_advantage_of_a_wrong_shape_is_refused_at_its_line(value: object, said: str) -> None:
    groups, mistaken = random_groups(), Mistaken(value)
    mistaken(groups)
    place = r"Mistaken \(test_pack\.py, line \d+\) set rollout\.advantages to "
    with pytest.raises(ConfigurationError, match=f"{place}{said}.*set_advantage"):
        check_advantages(mistaken, groups)


def test_advantages_of_the_right_shape_pass() -> None:
    groups = random_groups()
    for rollout in groups[0].rollouts:
        rollout.set_advantage(1.0)
    check_advantages(Mistaken(None), groups)
