"""Rewards that pay places in a completion, and rewards that wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from strop.filter.paid_text import Paid, Span
from strop.filter.reward_values import Fault, from_json, to_json
from strop.filter.scoring import Scorer
from strop.generate.templates.chat_template import Template
from strop.roles import Reward
from strop.storage.ledger.turn_bytes import decode_turns, encode_turns
from strop.training.advantages.gae import Gae
from strop.training.advantages.token_returns import TokenReturns
from strop.training.arithmetic.turn_returns import token_payments
from strop.types import Group, IntArray, Message, Outcome, Rollout
from tests.building import TASK, turn
from tests.tiny_models import save_pocket_like


def one_letter_each(completion: IntArray) -> IntArray:
    return np.arange(1, len(completion) + 1)


def rollout_of(*completions: str, num_prefix: int = 0) -> Rollout:
    """One token per letter; of the first completion some are num_prefix."""
    turns = [replace(turn(len(text)), message=Message("assistant", text)) for text in completions]
    first = turns[0]
    turns[0] = replace(
        first,
        prompt=np.concatenate([first.prompt, first.tokens[:num_prefix]]),
        tokens=first.tokens[num_prefix:],
        logprobs=first.logprobs[num_prefix:],
        versions=first.versions[num_prefix:],
        num_prefix=num_prefix,
    )
    return Rollout("a", TASK, tuple(turns), Outcome.FINISHED)


@dataclass(frozen=True)
class Says(Reward):
    score: Paid
    weight: float = 1.0
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float | Paid]:
        return [self.score for _ in group.rollouts]


def scored(rollout: Rollout, *rewards: Reward) -> Rollout:
    scorer = Scorer(rewards)
    scorer.places = one_letter_each
    asyncio.run(scorer(Group(0, TASK, [rollout])))
    return rollout


def test_a_place_is_paid_at_its_tokens_and_the_sum_is_the_reward() -> None:
    """Letters 1 to 3 of "abcde" earn 0.5 in all and 0.25 each; the end earns 1: 1 + 0.5 + 2 * 0.25 = 2."""
    rollout = scored(rollout_of("abcde"), Says(Paid(1.0, (Span(0, 1, 3, 0.5, 0.25, "step"),))))
    assert rollout.reward == rollout.rewards["says"] == 2.0
    assert rollout.turns[0].aux["paid/says"].tolist() == [0, 0, 0.25, 0.75, 0, 0]  # a prompt of one, then the letters
    assert rollout.turns[0].aux["span/step"].tolist() == [0, 0, 1, 1, 0, 0]
    assert token_payments(rollout).tolist() == [0, 0.25, 0.75, 0, 1.0]
    assert [np.array_equal(t.aux["paid/says"], rollout.turns[0].aux["paid/says"]) for t in _again(rollout)] == [True]


def _again(rollout: Rollout) -> Sequence[object]:
    return decode_turns(encode_turns(rollout.turns))


def test_weights_later_turns_and_given_beginnings() -> None:
    score = Paid(0.0, (Span(0, 0, 2, 1.0), Span(1, 1, 2, 3.0)))
    rollout = scored(rollout_of("abc", "xy", num_prefix=2), Says(score, weight=2.0), Says(Paid(1.0)))
    assert rollout.reward == 2.0 * 4.0 + 1.0
    # the num_prefix letters were paid 2 and nobody wrote them: that stands at the end, like all that has no token
    assert token_payments(rollout).tolist() == [0.0, 0.0, 2.0 * 3.0 + 2.0 + 1.0]


def test_credit_follows_the_payment() -> None:
    rollout = scored(rollout_of("abcd"), Says(Paid(0.0, (Span(0, 1, 2, 1.0),))))
    other = scored(rollout_of("abcd"), Says(Paid(0.0)))
    TokenReturns(kl=0.0)([Group(0, TASK, [rollout, other])])
    assert rollout.returns is not None and rollout.returns.tolist() == [1.0, 1.0, 0.0, 0.0]
    rollout.values = other.values = np.zeros(4, np.float32)
    Gae(trace=1.0, whiten=False)([Group(0, TASK, [rollout, other])])
    assert rollout.advantages is not None and rollout.advantages.tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("span", [Span(1, 0, 1), Span(0, 2, 9), Span(0, -1, 1), Span(0, 3, 2), Span(-1, 0, 1)])
def test_a_place_that_is_not_there_fails_the_rollout(span: Span) -> None:
    rollout = scored(rollout_of("abc"), Says(Paid(0.0, (span,))))
    assert rollout.outcome is Outcome.FAILED and "reward says: pays" in rollout.error


def test_places_count_characters_even_where_tokens_split_them(tmp_path: Path) -> None:
    template = Template.load(save_pocket_like(tmp_path))
    completion = template.encode_completion("12+3=15</think>15")
    places = template.places(completion)
    for token, place in enumerate(places):
        assert template.decode(completion[: token + 1]) == "12+3=15</think>15"[:place]


@dataclass(frozen=True)
class Waits(Reward):
    seconds: float
    is_inline: ClassVar[bool] = True

    async def __call__(self, group: Group) -> list[float]:
        await asyncio.sleep(self.seconds if len(group.rollouts[0].completion) == 3 else 0.0)
        return [1.0 for _ in group.rollouts]


def test_a_reward_may_wait_within_its_deadline() -> None:
    quick, slow = rollout_of("ab"), replace(rollout_of("abc"), id="b")
    scorer = Scorer([Waits(60.0)], seconds=0.05)
    asyncio.run(scorer(Group(0, TASK, [slow, quick])))
    assert quick.reward == 1.0 and quick.outcome is Outcome.FINISHED
    assert slow.outcome is Outcome.FAILED and "no answer within 0.05 s" in slow.error


def test_what_is_paid_comes_through_a_pipe_as_it_is_whole_numbers_too() -> None:
    scores: list[float | Paid | Fault] = [Paid(1, (Span(0, 1, 3, 2, 0, "step"),)), Paid(0.5), 2.0, Fault("no")]
    assert from_json(json.loads(json.dumps(to_json(scores))), 4) == scores
