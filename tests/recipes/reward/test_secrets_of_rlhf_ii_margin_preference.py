from __future__ import annotations

from math import exp, log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.reward.secrets_of_rlhf_ii import MarginPreference
from strop.training.batch import Batch
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from tests.building import Said, written
from tests.training.losses.preferences.scenes import at_verdicts, verdicts


def scene(gap: float, strength: float, is_turned: bool = False) -> tuple[Batch, Said]:
    batch, output = verdicts([gap, 0.0], [1.0, 0.0])
    batch.aux["strength"] = torch.tensor([strength, float(is_turned)]).expand(len(batch.tokens), 2)
    return batch, output


def test_without_strength_it_is_bradley_terry() -> None:
    batch, output = scene(0.7, 0.0)
    plain = BradleyTerry()(output, batch)[0]
    assert written(batch, MarginPreference()(output, batch)[0]) == pytest.approx(written(batch, plain))


def test_a_sure_pair_must_exceed_its_margin() -> None:
    """d = 1, u = 3: -log s(-2) = 2.126928, and the margin itself is not learned."""
    batch, output = scene(1.0, 3.0)
    loss, metrics = MarginPreference(soft=0.2)(output, batch)
    assert written(batch, loss) == pytest.approx([2.126928] * 2)
    (batch.share * loss).sum().backward()  # type: ignore[no-untyped-call]
    assert at_verdicts(batch, output)[0][0] == pytest.approx(-0.880797)
    assert metrics == pytest.approx({"preferred_share": 1.0, "flipped_share": 0.0, "strength": 3.0})
    assert written(batch, MarginPreference(has_margin=False)(output, batch)[0]) == pytest.approx([log(1 + exp(-1))] * 2)


def test_an_unsure_pair_has_a_soft_label() -> None:
    """d = 1, u = -1, a = 0.1: x = d - u = 2: 0.9 * 0.126928 + 0.1 * 2.126928."""
    batch, output = scene(1.0, -1.0)
    assert written(batch, MarginPreference(soft=0.1)(output, batch)[0]) == pytest.approx([0.326928] * 2)


def test_a_flipped_pair_of_minus_two_has_a_margin_of_plus_two() -> None:
    """d = 1 flipped is -1, less 2: -log s(-3) = 3.048587; it is sure now, so nothing is softened."""
    batch, output = scene(1.0, -2.0, is_turned=True)
    loss, metrics = MarginPreference(soft=0.1)(output, batch)
    assert written(batch, loss) == pytest.approx([3.048587] * 2)
    assert metrics == pytest.approx({"preferred_share": 0.0, "flipped_share": 1.0, "strength": -2.0})


def test_what_it_cannot_work_with_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"soft < 0.5, got 0.5"):
        MarginPreference(soft=0.5)
    batch, output = verdicts([1.0, 0.0], [1.0, 0.0])
    with pytest.raises(ConfigurationError, match="use the strategy EnsembleVotes"):
        MarginPreference()(output, batch)
