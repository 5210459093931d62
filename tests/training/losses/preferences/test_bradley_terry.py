from __future__ import annotations

from math import exp, log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from tests.building import make_batch, say, written
from tests.training.losses.preferences.scenes import at_verdicts, verdicts


def s(x: float) -> float:
    return 1 / (1 + exp(-x))


def test_value_and_gradient_of_a_pair_by_hand() -> None:
    """Scores 1 and 3, the first is better: -log s(-2) = 2.126928; d/d(score of the first) = -s(2) = -0.880797."""
    batch, output = verdicts([1.0, 3.0], [1.0, 0.0])
    loss, metrics = BradleyTerry()(output, batch)
    assert written(batch, loss) == pytest.approx([2.126928, 2.126928])
    assert not loss[~batch.trainable].any()
    (batch.share * loss).sum().backward()  # type: ignore[no-untyped-call]
    (good, bad), (other_good, other_bad) = at_verdicts(batch, output)
    assert good == pytest.approx(-0.880797) and bad == pytest.approx(0.880797)
    assert (other_good, other_bad) == pytest.approx((0.880797, -0.880797))
    assert output.logits is not None and output.logits.grad is not None
    assert float(output.logits.grad.abs().sum()) == pytest.approx(4 * 0.880797), "no other word, no other token"
    assert metrics == pytest.approx({"preferred_share": 0.0, "score_margin": -2.0})


def test_a_ranking_is_the_mean_of_its_pairs_and_ties_make_none() -> None:
    scores, rewards, groups = (
        [0.5, 2.0, -1.0, 0.3, 0.9, 7.0, 8.0],
        [2.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0],
        [0, 0, 0, 1, 1, 2, 2],
    )
    batch, output = verdicts(scores, rewards, groups)
    loss, _ = BradleyTerry()(output, batch)
    first = sum(-log(s(scores[i] - scores[j])) for i, j in ((0, 1), (0, 2), (1, 2))) / 3
    second = -log(s(0.3 - 0.9))
    assert written(batch, loss) == pytest.approx([first] * 3 + [second] * 2 + [0.0] * 2)


def test_only_differences_of_scores_count() -> None:
    values = []
    for shift in (0.0, 5.0):
        batch, output = verdicts([1.0 + shift, 0.2 + shift], [0.0, 1.0])
        values.append(written(batch, BradleyTerry()(output, batch)[0]))
    assert values[0] == pytest.approx(values[1])


def test_scores_far_apart_stay_finite() -> None:
    batch, output = verdicts([-1e4, 1e4], [1.0, 0.0])
    loss, _ = BradleyTerry()(output, batch)
    loss.sum().backward()  # type: ignore[no-untyped-call]
    assert written(batch, loss) == pytest.approx([2e4, 2e4])
    assert output.logits is not None and torch.isfinite(output.logits.grad).all()  # type: ignore[arg-type]


def test_what_is_no_verdict_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="need rollouts of RecitedVerdicts"):
        BradleyTerry()(say([[0.0], [0.0]]), make_batch([[0.0], [0.0]], rewards=[1.0, 0.0]))
    batch = make_batch([[0.0, 0.0], [0.0]], rewards=[1.0, 0.0])
    batch.aux = {"verdicts": torch.ones(5, 2)}
    with pytest.raises(ConfigurationError, match=r"exactly one verdict token, got \[1.0, 2.0\]"):
        BradleyTerry()(say([[0.0, 0.0], [0.0]]), batch)
