"""Pay for the layout of completions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.filter.rewards.format import Formatted
from strop.types import Group, Message
from tests.building import make_group, turn

LAID_OUT = ["<think>1+2=3</think>3", "<think></think>3", "<think>\n\n</think> 3", " <think>a</think>b"]
NOT = [
    "<think>1+2=3</think>", "<think>a</think>  ", "<think>1+2=3", "</think>3", "3<think>a</think>3",
    "<think>a</think>3</think>4", "<think><think>a</think>3", "</think><think>3", "",
]  # fmt: skip


def said(*completions: str) -> Group:
    group = make_group([0.0])
    group.rollouts[0].turns = tuple(
        replace(turn(1), message=Message("assistant", completion)) for completion in completions
    )
    return group


@pytest.mark.parametrize("must_think", [True, False])
def test_tags_once_and_something_behind_them(must_think: bool) -> None:
    reward = Formatted(must_think)
    assert [reward(said(completion)) for completion in LAID_OUT] == [[1.0]] * len(LAID_OUT), (
        "a thought of nothing as a long one"
    )
    assert [reward(said(completion)) for completion in NOT] == [[0.0]] * len(NOT)


def test_a_completion_without_tags_is_in_order_where_it_need_not_think() -> None:
    assert Formatted(True)(said("<call>get red</call>")) == [0.0]
    assert Formatted(False)(said("<call>get red</call>")) == [1.0] and Formatted(False)(said(" ")) == [0.0]


def test_several_completions_are_averaged() -> None:
    assert Formatted(False)(said("<call>get red</call>", "<think>1", "<think>1</think>2", "4")) == [0.75]
    assert Formatted()(said()) == [0.0]
