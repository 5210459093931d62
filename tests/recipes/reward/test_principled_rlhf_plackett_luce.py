from __future__ import annotations

from itertools import permutations
from math import exp, log

import pytest
import torch

from strop.recipes.reward.principled_rlhf import PlackettLuce
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from tests.building import written
from tests.training.losses.preferences.scenes import verdicts


def test_a_ranking_by_hand() -> None:
    """Scores 2, 1, 0 in that order: log(1 + e^-1 + e^-2) + log(1 + e^-1) + 0 = 0.407606 + 0.313262."""
    batch, output = verdicts([2.0, 0.0, 1.0], [1.0, 0.0, 0.5])
    loss, metrics = PlackettLuce()(output, batch)
    assert written(batch, loss) == pytest.approx([0.720868] * 3, abs=1e-6)
    assert metrics == pytest.approx({"preferred_share": 1.0, "score_margin": 4 / 3})
    assert not loss[~batch.trainable].any()


def test_the_probabilities_of_all_rankings_add_up_to_one() -> None:
    scores, total = [0.3, -1.2, 2.0, 0.7], 0.0
    for order in permutations(range(4)):
        batch, output = verdicts(scores, [float(-order.index(place)) for place in range(4)])
        found = written(batch, PlackettLuce()(output, batch)[0])[0]
        by_hand = 0.0
        for k, best in enumerate(order):
            by_hand -= log(exp(scores[best]) / sum(exp(scores[each]) for each in order[k:]))
        assert found == pytest.approx(by_hand)
        total += exp(-found)
    assert total == pytest.approx(1.0)


def test_of_two_it_is_bradley_terry_and_only_differences_count() -> None:
    scores, rewards, groups = [1.0, 3.0, -2.0, 0.5], [1.0, 0.0, 0.0, 1.0], [0, 0, 1, 1]
    gradients = []
    for loss in (BradleyTerry(), PlackettLuce()):
        batch, output = verdicts(scores, rewards, groups)
        value, _ = loss(output, batch)
        (batch.share * value).sum().backward()  # type: ignore[no-untyped-call]
        gradients.append((written(batch, value), output.logits.grad))  # type: ignore[union-attr]
    assert gradients[0][0] == pytest.approx(gradients[1][0])
    torch.testing.assert_close(gradients[0][1], gradients[1][1])
    batch, output = verdicts([score + 40 for score in scores], rewards, groups)
    assert written(batch, PlackettLuce()(output, batch)[0]) == pytest.approx(gradients[0][0])


def test_equals_come_before_neither() -> None:
    batch, output = verdicts([0.0, 1.0, 2.0], [1.0, 1.0, 0.0])
    both = log(1 + exp(2)) + log(1 + exp(1))
    assert written(batch, PlackettLuce()(output, batch)[0]) == pytest.approx([both] * 3)
