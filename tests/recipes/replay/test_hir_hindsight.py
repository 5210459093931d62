"""HIR's loss: numbers by hand."""

from __future__ import annotations

from math import e, log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes import build, recipe_named
from strop.recipes.replay.hir import Hindsight
from strop.training.batch import ORIGINS, Batch
from strop.types import Origin
from tests.building import Said, make_batch, say, written


def pair(reward: float, own: list[float], other: list[float]) -> tuple[Batch, Said]:
    """A rollout and its twin, whose tokens the policy gives these log-probabilities; two words, all alike."""
    batch, output = make_batch([own, other], rewards=[reward] * 2, share=[[1.0] * len(own)] * 2), say([own, other])
    batch.origins = torch.tensor([ORIGINS.index(each) for each in (Origin.POLICY, Origin.REPLAYED)])
    output.logits = torch.zeros(len(batch.tokens), 2, dtype=torch.float64)
    output.tokens = batch.tokens
    return batch, output


def test_the_preference_alone() -> None:
    """P equal: ln 2, and slopes -1/2 and +1/2 of the mean log-probability, which two tokens share."""
    batch, output = pair(1.0, [-1.0, -2.0], [-2.0, -1.0])
    loss, metrics = Hindsight(smoothing=0.0, entropy=0.0)(output, batch)
    assert written(batch, loss) == pytest.approx([1.0 + log(2), 2.0 + log(2), 0.0, 0.0])
    (loss[1] + 1 * output.logprobs[1]).backward()  # without imitation
    assert written(batch, output.logprobs.grad) == pytest.approx([-0.25, -0.25, 0.25, 0.25])
    assert metrics == {"preferred": pytest.approx(2 * 0.5), "relabelled": 0.0}


def test_without_preference_smoothing_and_entropy_it_is_imitation_of_relabelled_pairs() -> None:
    for reward, expected in ((1.0, [1.0, 2.0, 0.0, 0.0]), (0.0, [0.0, 0.0, 3.0, 0.5]), (0.5, [0.0, 0.0, 3.0, 0.5])):
        batch, output = pair(reward, [-1.0, -2.0], [-3.0, -0.5])
        loss, metrics = Hindsight(0.0, 0.0, 0.0)(output, batch)
        assert written(batch, loss) == pytest.approx(expected)
        assert metrics["relabelled"] == (0.0 if reward == 1.0 else 2.0)


def test_everything_together() -> None:
    """A wrong rollout: the twin is meant. P 1/e of it and 1/e^2 of the other; ln(1/2) over both words; entropy 0.4."""
    batch, output = pair(0.0, [-2.0], [-1.0])
    output.entropy = torch.full_like(output.logprobs, 0.4)
    loss, metrics = Hindsight(0.2, 0.5, 0.01)(output, batch)
    chosen = (1 / e) / (1 / e + 1 / e**2)
    preference = -0.8 * log(chosen) - 0.2 * log(1 - chosen)
    assert written(batch, loss) == pytest.approx([0.0, 0.8 * 1.0 + 0.2 * log(2) - 0.01 * 0.4 + 0.5 * preference])
    assert metrics == {"preferred": pytest.approx(chosen), "relabelled": 1.0}


def test_pairs_do_not_see_each_other() -> None:
    one, said = pair(1.0, [-1.0], [-2.0])
    alone = Hindsight()(said, one)[0]
    batch = make_batch([[-1.0], [-2.0], [-3.0], [-0.1]], groups=[0, 0, 1, 1], rewards=[1.0, 1.0, 0.0, 0.0])
    batch.origins = torch.tensor([ORIGINS.index(each) for each in (Origin.POLICY, Origin.REPLAYED)] * 2)
    output = say([[-1.0], [-2.0], [-3.0], [-0.1]])
    output.logits, output.tokens = torch.zeros(len(batch.tokens), 2, dtype=torch.float64), batch.tokens
    torch.testing.assert_close(Hindsight()(output, batch)[0][: len(alone)], alone)


def test_what_a_policy_has_learned_by_heart_it_still_writes_at_temperature_1() -> None:
    """Of 40 characters, by the probability that costs least; the release's 0.2 would leave 1 of 200 whole."""
    (loss,) = build(recipe_named("hir"), {}).losses
    assert isinstance(loss, Hindsight)

    def cost(probability: float, smoothing: float) -> float:
        others = 39 * log((1 - probability) / 39)
        return -(1 - smoothing) * log(probability) - smoothing * (log(probability) + others) / 40

    def whole(smoothing: float) -> float:
        best: float = min((each / 100_000 for each in range(70_000, 100_000)), key=lambda each: cost(each, smoothing))
        return best**25

    assert whole(loss.smoothing) > 0.9 and whole(0.2) < 1 / 150


def test_bad_input_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="0 <= smoothing < 1, got 1"):
        Hindsight(1.0)
    batch, output = make_batch([[-1.0]]), say([[-1.0]])
    with pytest.raises(ConfigurationError, match=r"needs pairs, got groups of \[1\]"):
        Hindsight()(output, batch)
