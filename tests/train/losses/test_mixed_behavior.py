"""REX-RAG's mixture: probabilities by hand, plain attempts without probes as ever."""

from __future__ import annotations

from math import log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.train.batch import ORIGINS
from strop.train.losses.clip import Clip
from strop.train.losses.mixed_behavior import MixedBehavior
from strop.train.losses.reinforce import Reinforce
from strop.types import Origin
from tests.building import lay_out, make_batch, say, written


def test_by_hand() -> None:
    """Two groups: three plain attempts and a probe (a = 1/4), one plain attempt alone (a = 0).

    The plain token at 0.4 has 0.3; the probe's word, which the list gives 0.5 and the policy 0.1, has
    0.75 * 0.1 + 0.25 * 0.5 = 0.2; its sampled token at 0.6 keeps 0.6; the last attempt keeps its 0.4.
    """
    batch = make_batch(
        [[log(0.4)], [log(0.4)], [log(0.4)], [log(0.5), log(0.6)], [log(0.4)]],
        groups=[0, 0, 0, 0, 1],
        share=[[1.0]] * 3 + [[1.0, 1.0], [1.0]],
    )
    batch.origins = torch.tensor([0, 0, 0, ORIGINS.index(Origin.BRANCHED), 0])
    batch.versions = torch.where(batch.trainable, 0, -1)
    batch.versions[7] = -1  # the probe's first token
    batch.fill("proximal", lay_out([[log(0.9)]] * 3 + [[log(0.1), log(0.9)], [log(0.9)]]))
    mixed, share = MixedBehavior(Clip()).mixed(batch)
    assert written(batch, mixed.exp()) == pytest.approx([0.3, 0.3, 0.3, 0.2, 0.6, 0.4])
    assert written(batch, share) == pytest.approx([0.25] * 5 + [0.0])
    output = say([[log(0.33)], [log(0.3)], [log(0.5)], [log(0.1), log(0.6)], [log(0.4)]])
    loss, figures = MixedBehavior(Clip(0.2, 0.2))(output, batch)
    assert written(batch, loss) == pytest.approx([-1.1, -1.0, -1.2, -0.5, -1.0, -1.0])
    assert figures["probes_share"] == pytest.approx(1.25) and figures["clipped_share"] == 1.0


def test_without_probes_it_is_the_inner_loss() -> None:
    batch, output = make_batch([[-1.0, -0.4]], [2.0]), say([[-0.9, -0.5]])
    batch.fill("proximal", lay_out([[-7.0, -7.0]]))
    inner = Clip(0.1, 0.1, weight=0.5)
    one, other = MixedBehavior(inner)(output, batch)[0], inner(output, batch)[0]
    assert written(batch, one) == pytest.approx(written(batch, other)) and MixedBehavior(inner).weight == 0.5


def test_a_loss_without_a_ratio_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="got Reinforce"):
        MixedBehavior(Reinforce())
    with pytest.raises(ConfigurationError, match="got Clip"):
        MixedBehavior(Clip(anchor="proximal"))
