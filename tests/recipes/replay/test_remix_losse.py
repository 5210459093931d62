"""ReMix's clip and leash, by hand."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.replay.remix import KlConvex, MixedClip
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from tests.building import lay_out, make_batch, say, written


def mixed(centre: float, advantage: float, count: int) -> Batch:
    """Tokens that were sampled with probability 0.1; the policy before the step gives them `centre` times as much."""
    batch = make_batch([[log(0.1)] * count], [advantage], reference=[[log(0.2)] * count])
    batch.fill("proximal", lay_out([[log(0.1 * centre)] * count]))
    return batch


def gradient(loss: MixedClip | KlConvex, batch: Batch, probabilities: list[float]) -> list[float]:
    """By log-probability, times the number of tokens."""
    output = say([[log(probability) for probability in probabilities]])
    (batch.share * loss(output, batch)[0]).sum().backward()
    return [len(probabilities) * each for each in written(batch, output.logprobs.grad)]


def test_the_window_is_centred_on_the_policy_before_the_step() -> None:
    """c = 1.5 and 0.2: a plain clip would have ended at 1.2; for A < 0 the push ends below 1.3."""
    up = gradient(MixedClip(0.2), mixed(1.5, 2.0, 4), [0.13, 0.16, 0.169, 0.171])
    assert up == pytest.approx([-2 * 1.3, -2 * 1.6, -2 * 1.69, 0.0])
    down = gradient(MixedClip(0.2), mixed(1.5, -1.0, 3), [0.129, 0.131, 0.18])
    assert down == pytest.approx([0.0, 1.31, 1.8])
    loss, metrics = MixedClip(0.2)(say([[log(0.16), log(0.2)]]), mixed(1.5, 1.0, 2))
    assert written(mixed(1.5, 1.0, 2), loss) == pytest.approx([-1.6, -1.7])
    assert metrics == pytest.approx({"clipped_share": 0.5, "clip_centre": 1.5})


def test_for_fresh_rollouts_it_is_ppos() -> None:
    probabilities = [0.05, 0.081, 0.1, 0.119, 0.3]
    for advantage in (1.0, -1.0):
        batch, output, other = (
            mixed(1.0, advantage, 5),
            say([list(map(log, probabilities))]),
            say([list(map(log, probabilities))]),
        )
        ours, plain = MixedClip(0.2)(output, batch)[0], Clip(0.2, 0.2)(other, batch)[0]
        torch.testing.assert_close(ours, plain)
        for loss in (ours, plain):
            loss.sum().backward()
        torch.testing.assert_close(output.logprobs.grad, other.logprobs.grad)


def test_the_share_of_the_reference_falls_to_one_half() -> None:
    leash = KlConvex(hold=50)
    found = {version: leash.share(version) for version in (0, 50, 51, 60, 61, 90, 91, 1000)}
    assert found == pytest.approx({0: 1.0, 50: 1.0, 51: 0.9, 60: 0.9, 61: 0.8, 90: 0.6, 91: 0.5, 1000: 0.5})


def test_the_leash_by_hand() -> None:
    """k3 of d: e^-d - 1 + d. To the reference (0.2) from 0.3, d = log 1.5; to the one before (0.15), log 2."""
    k3 = [2 / 3 - 1 + log(1.5), 1 / 2 - 1 + log(2)]
    batch = mixed(1.5, 1.0, 1)
    for version, share in ((0, 1.0), (51, 0.9), (200, 0.5)):
        batch.version = version
        loss, metrics = KlConvex()(say([[log(0.3)]]), batch)
        assert written(batch, loss) == pytest.approx([share * k3[0] + (1 - share) * k3[1]])
        assert metrics == pytest.approx({"reference_kl": log(1.5), "reference_share": share})
        slope = share * (1 - exp(-log(1.5))) + (1 - share) * (1 - exp(-log(2)))
        assert gradient(KlConvex(), batch, [0.3]) == pytest.approx([slope])


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"clip > 0, got 0\.0"):
        MixedClip(0.0)
    with pytest.raises(ConfigurationError, match="hold >= 0, got -1"):
        KlConvex(hold=-1)
