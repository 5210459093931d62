from __future__ import annotations

from math import log

import pytest

from strop.errors import ConfigurationError
from strop.recipes.reward.er_prm import StepVerdict
from tests.building import written
from tests.training.losses.preferences.scenes import at_verdicts, verdicts


def test_soft_labels_by_hand() -> None:
    """p = s(log 3) = 3/4; r = 1/4: -(log(3/4) + 3 log(1/4)) / 4; d/dscore = p - r = 1/2."""
    batch, output = verdicts([log(3), log(3), -log(3)], [0.25, 1.0, 0.25], [0, 0, 1])
    loss, metrics = StepVerdict()(output, batch)
    expected = [-(log(0.75) + 3 * log(0.25)) / 4, -log(0.75), -(log(0.25) + 3 * log(0.75)) / 4]
    assert written(batch, loss) == pytest.approx(expected)
    (batch.share * loss).sum().backward()  # type: ignore[no-untyped-call]
    assert [good for good, _ in at_verdicts(batch, output)] == pytest.approx([0.5 / 3, -0.25 / 3, 0.0], abs=1e-12)
    assert metrics == pytest.approx({"label": 0.5, "label_error": 0.25})


def test_a_label_that_is_beyond_chance_is_refused() -> None:
    batch, output = verdicts([0.0, 0.0], [0.0, 1.5])
    with pytest.raises(ConfigurationError, match=r"labels from 0 to 1, got 0 to 1.5"):
        StepVerdict()(output, batch)
