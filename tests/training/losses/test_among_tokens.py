"""A loss at tokens that were sampled, or at those that nobody sampled: numbers by hand."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes import build, recipe_named
from strop.training.batch import Batch
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.preference_pairs import Dpo
from strop.types import Origin
from tests.building import lay_out, make_batch, say, written

SAID = [[log(0.5), log(0.25)], [log(0.2)]]


def batch_with_said() -> Batch:
    """Of the first rollout the first token is said by nobody; the second rollout is sampled."""
    batch = make_batch(SAID, advantages=[2.0, -1.0])
    versions = lay_out([[-1.0, 3.0], [3.0]], -1.0).to(torch.int64)
    return replace(batch, versions=versions)


def test_each_loss_sees_its_own_tokens() -> None:
    batch, output = batch_with_said(), say(SAID)
    loss, metrics = Among(Clip(0.2, 0.2), sampled=True)(output, batch)
    assert written(batch, loss) == pytest.approx([0.0, -2.0, 1.0])
    assert metrics["sampled/share"] == pytest.approx(2 / 3) and metrics["sampled/ratio"] == pytest.approx(2 / 3)
    loss.sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0, -2.0, 1.0])


def test_what_was_said_is_imitated_apart() -> None:
    batch, output = batch_with_said(), say(SAID)
    part = Among(Likelihood(0.001), sampled=False)
    loss, metrics = part(output, batch)
    assert part.weight == 0.001 and written(batch, loss) == pytest.approx([log(2), 0.0, 0.0])
    assert metrics == {"said/share": pytest.approx(1 / 3), "said/nll": pytest.approx(log(2) / 3)}


def test_refuses_losses_on_more_than_tokens() -> None:
    with pytest.raises(ConfigurationError, match="Among needs a loss on single tokens to restrict it"):
        Among(Dpo(), sampled=True)


def test_both_conditions_hold_at_once() -> None:
    """Of the first rollout the sampled token, of the guided one none: it is not asked for."""
    batch, output = batch_with_said(), say(SAID)
    batch = replace(batch, origins=torch.tensor([0, 1]))
    loss, metrics = Among(Clip(0.2, 0.2), (Origin.POLICY,), sampled=True)(output, batch)
    assert written(batch, loss) == pytest.approx([0.0, -2.0, 0.0]) and metrics["policy+sampled/share"] == 1 / 3
    with pytest.raises(ConfigurationError, match="Among needs at least 1 origin"):
        Among(Clip(0.2, 0.2))


def test_scopes_losses_side_by_side() -> None:
    """A = 2. Sampled: ratio 0.5/0.4 = 1.25, clipped at 1.2: no gradient; 0.44/0.4 = 1.1: -2.2. Said: p = 0.3 and shift
    0.1: -2 * 0.75, gradient -2 * 0.3 * 0.1 / 0.4^2 = -0.375; p = 0.1: -2 * 0.5, gradient -2 / 4."""
    batch = make_batch([[log(0.4), log(0.4), 0.0, 0.0]], [2.0], share=[[1.0] * 4])
    batch.versions = torch.tensor([-1, 0, 0, -1, -1])
    output = say([[log(0.5), log(0.44), log(0.3), log(0.1)]])
    losses = build(recipe_named("scope"), {}).losses
    own, outside = (loss(output, batch) for loss in losses)
    assert written(batch, own[0] + outside[0]) == pytest.approx([-2.4, -2.2, -1.5, -1.0])
    (own[0] + outside[0]).sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0, -2.2, -0.375, -0.5])
    assert outside[1] == {"said/share": 2.0, "said/shaped": pytest.approx(1.25)}
    assert own[1]["sampled/clipped_share"] == 1.0 and own[1]["sampled/ratio"] == pytest.approx(2.35)
