"""Semi-offline RL: overlap by hand, the expected gradient by enumeration, gaps alone are taught, one pass for all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from math import log

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.rollout.semi_offline import Filled, overlap
from strop.training.arithmetic.token_draws import token_keys, uniforms
from tests.building import Said, make_batch


@dataclass
class Reading(Said):
    """Policy statistics what it was asked to read again."""

    asked: list[list[int]] | None = None

    def reread(self, others: Tensor, share: float) -> Said:
        assert share == 1.0 and self.asked is not None
        self.asked.append(others.tolist())
        return self


def reading(logits: Tensor, tokens: Tensor) -> Reading:
    nothing = torch.zeros(len(tokens), dtype=torch.float64)
    return Reading(nothing, nothing, logits, tokens, asked=[])


def by_hand(text: list[int], target: list[int]) -> float:
    def shared(one: list[object], other: list[object]) -> float:
        return sum((Counter(one) & Counter(other)).values()) / len(other)

    pairs = [list(pairwise(each)) for each in (text, target)]
    return (shared(list(text), list(target)) + shared(*pairs)) / 2  # type: ignore[arg-type]


def test_overlap_by_hand() -> None:
    """Of 1 2 2 3 the text 2 2 2 1 has 1, 2, 2: 3/4; of its pairs 12, 22, 23 one: 1/3."""
    target = torch.tensor([1, 2, 2, 3])
    texts = [[2, 2, 2, 1], [1, 2, 2, 3], [4, 4, 4, 4], [3, 1, 2, 2]]
    found = overlap(torch.tensor(texts), target)
    assert found[0] == pytest.approx((3 / 4 + 1 / 3) / 2) and found[1] == 1 and found[2] == 0
    assert found.tolist() == pytest.approx([by_hand(text, target.tolist()) for text in texts])
    assert overlap(torch.tensor([[5], [6]]), torch.tensor([5])).tolist() == [1.0, 0.0]


def test_the_expected_gradient_by_enumeration() -> None:
    """One rollout of the tokens 1 0 1 with every place a gap: nine fillings' worth of reward, weighed exactly.

    With n fillings the expectation is (n - 1) / n times the gradient of the expected reward, over three gaps.
    """
    probabilities = torch.tensor([[0.5, 0.5], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]], dtype=torch.float64)
    target = [1, 0, 1]
    exact = probabilities.log().requires_grad_()
    expected = torch.zeros((), dtype=torch.float64)
    for a in (0, 1):
        for b in (0, 1):
            for c in (0, 1):
                rows = exact.log_softmax(-1).exp()
                expected = expected + rows[1, a] * rows[2, b] * rows[3, c] * by_hand([a, b, c], target)
    expected.backward()
    batch = make_batch([[0.0] * 3], share=[[1 / 3] * 3])
    batch.tokens = torch.tensor([0, *target])
    logits = probabilities.log().requires_grad_()
    loss, metrics = Filled(1.0, 40_000)(reading(logits, batch.tokens), batch)
    (loss * batch.share).sum().backward()
    assert exact.grad is not None and logits.grad is not None
    assert torch.allclose(-3 * logits.grad, exact.grad, atol=0.01)
    assert metrics["overlap"] == pytest.approx(expected.item(), abs=0.01) and metrics["gaps"] == pytest.approx(1.0)


def test_gaps_alone_are_taught_and_the_model_is_read_once() -> None:
    batch = make_batch([[0.0] * 40, [0.0] * 3], share=[[0.1] * 40, [0.1] * 3])
    batch.tokens = torch.arange(45) % 7
    logits = torch.zeros(45, 7, dtype=torch.float64, requires_grad=True)
    for fillings in (2, 9):
        output = reading(logits, batch.tokens)
        loss, metrics = Filled(0.5, fillings, mask=6, seed=3)(output, batch)
        assert output.asked is not None and len(output.asked) == 1
        gaps = [index for index, token in enumerate(output.asked[0]) if token != batch.tokens[index] or token == 6]
        assert all(batch.trainable[index] for index in gaps if batch.tokens[index] != 6)
        taught = loss.nonzero().squeeze(1).tolist()
        assert taught and set(taught) <= set(gaps) and 10 <= 10 * metrics["gaps"] <= 33
    again = Filled(0.5, 9, mask=6, seed=3)(reading(logits, batch.tokens), batch)[0]
    other = Filled(0.5, 9, mask=6, seed=4)(reading(logits, batch.tokens), batch)[0]
    assert torch.equal(again, loss) and not torch.equal(other, loss)


def test_a_gap_is_taught_against_the_mean_of_all_fillings() -> None:
    """In plain loops: 12 tokens, about half of them gaps, three fillings by the numbers after the gap's own."""
    batch = make_batch([[0.0] * 12], share=[[1 / 12] * 12])
    batch.tokens = torch.arange(13) % 4
    probabilities = torch.rand(13, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).softmax(-1)
    output = reading(probabilities.log(), batch.tokens)
    loss, _ = Filled(0.5, 3, mask=9, seed=2)(output, batch)
    numbers, target = uniforms(token_keys(batch, 2), 4).tolist(), batch.tokens[1:].tolist()
    gaps = [at for at in range(1, 13) if numbers[at][0] < 0.5]
    assert output.asked == [[9 if at in gaps else int(batch.tokens[at]) for at in range(13)]] and 3 <= len(gaps) <= 9
    texts = [list(target) for _ in range(3)]
    for at in gaps:
        for filling, number in enumerate(numbers[at][1:]):
            texts[filling][at - 1] = int((probabilities[at].cumsum(0) <= number).sum())
    rewards = [by_hand(text, target) for text in texts]
    assert len(set(rewards)) > 1
    for at in gaps:
        taught = [
            log(probabilities[at, text[at - 1]]) * (r - sum(rewards) / 3)
            for text, r in zip(texts, rewards, strict=True)
        ]
        assert loss[at].item() == pytest.approx(-sum(taught) / 3 * 12 / len(gaps))


def test_fillings_that_earn_the_same_teach_nothing() -> None:
    batch = make_batch([[0.0] * 3])
    batch.tokens = torch.tensor([0, 1, 0, 1])
    sure = torch.tensor([[0.0, -50.0], [-50.0, 0.0], [0.0, -50.0], [-50.0, 0.0]], dtype=torch.float64)
    loss, metrics = Filled(1.0, 8)(reading(sure.requires_grad_(), batch.tokens), batch)
    assert loss.abs().max() == 0 and metrics["overlap"] == pytest.approx(1.0) and metrics["overlap_spread"] == 0
    none, metrics = Filled(0.0, 8)(reading(sure, batch.tokens), batch)
    assert none.abs().max() == 0 and metrics["gaps"] == 0 and metrics["overlap"] == pytest.approx(1.0)


def test_bad_numbers_are_told() -> None:
    for fields, told in [({"rate": 1.1}, r"got 1\.1, 64"), ({"fillings": 1}, "1 and 0"), ({"mask": -1}, "64 and -1")]:
        with pytest.raises(ConfigurationError, match=told):
            Filled(**fields)  # type: ignore[arg-type]
