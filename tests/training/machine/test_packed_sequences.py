"""Every prefix that segments of a packed batch have in common is computed once, wherever they stand in the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from strop.models.layers.attention import Packed
from strop.models.loading.model_names import POCKET
from strop.models.model import hidden_states, load_model
from strop.training.machine.llama import llama_forward
from strop.training.machine.packed_sequences import Sequences

SEGMENTS = [[5, 3, 3, 1], [5, 3, 1], [5, 3, 3, 1], [7], [5, 3, 3], [5, 3, 3, 2, 4], [2, 5, 3], [5, 3, 3, 1, 1]]


def sequences(segments: list[list[int]]) -> Sequences:
    return Sequences(flat(segments), positions(segments), [len(each) for each in segments], "cpu")


def flat(segments: list[list[int]]) -> Tensor:
    return torch.tensor([token for each in segments for token in each])


def positions(segments: list[list[int]]) -> Tensor:
    return torch.cat([torch.arange(len(each)) for each in segments])


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=12))
def test_what_is_computed_are_the_distinct_prefixes(segments: list[list[int]]) -> None:
    prefixes = {tuple(each[:size]) for each in segments for size in range(1, len(each))}  # the last predicts nothing
    assert sequences(segments).num_computed == len(prefixes)


def test_siblings_that_go_on_alike_need_not_be_neighbours() -> None:
    prompt, right, wrong = [9, 8], [1, 2, 3, 4], [1, 5]
    apart = sequences([prompt + right, prompt + wrong, prompt + right, prompt + wrong])
    assert apart.num_computed == 2 + 3  # the prompt, and what comes before the last token of `right`


@pytest.mark.parametrize("is_fast", [False, True])
def test_states_and_gradients_are_those_of_segments_by_themselves(is_fast: bool) -> None:
    model = load_model(POCKET)  # whose heads are wide enough for compiled attention
    quick = llama_forward(model, torch.float32, says_why_not=True) if is_fast else None
    assert (quick is not None) == is_fast
    found = sequences(SEGMENTS)
    together = found.computed(model, quick).index_select(0, found.places)
    plan = Packed([len(each) for each in SEGMENTS])
    alone = hidden_states(model, flat(SEGMENTS), positions(SEGMENTS), plan)
    is_read = torch.from_numpy(np.concatenate([np.arange(len(each)) < len(each) - 1 for each in SEGMENTS]))
    torch.testing.assert_close(together[is_read], alone[is_read], rtol=0, atol=1e-5)
    weights = torch.randn(alone[is_read].shape, generator=torch.Generator().manual_seed(0))
    exact = load_model(POCKET).double()  # whose sums may come in any order
    true = gradients(exact, hidden_states(exact, flat(SEGMENTS), positions(SEGMENTS), plan)[is_read], weights)
    for ours, theirs in zip(gradients(model, together[is_read], weights), true, strict=True):
        assert (ours - theirs).abs().max() <= 1e-5 * theirs.abs().max()


def gradients(model: Any, states: Tensor, weights: Tensor) -> list[Tensor]:
    found = torch.autograd.grad((states * weights).sum(), list(model.parameters()), allow_unused=True)
    return [each for each in found if each is not None]
