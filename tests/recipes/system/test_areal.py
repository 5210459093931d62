from __future__ import annotations

from math import log

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.system.areal import Decoupled
from strop.training.batch import Batch
from strop.training.corrections.importance_weights import Masked
from strop.training.losses.clip import Clip
from strop.training.requirements import Logprobs
from tests.building import lay_out, make_batch, say, written


def one_token(loss: Decoupled, policy: float, advantage: float = 1.0, anchor: float = 0.2) -> tuple[float, float]:
    """Objective and its derivative by log policy, for one token with behaviour probability 0.1."""
    batch = make_batch([[log(0.1)]], [advantage])
    batch.fill("proximal", lay_out([[log(anchor)]], float("nan")))
    output = say([[log(policy)]])
    value, _ = loss(output, batch)
    (-value).sum().backward()
    return -written(batch, value)[0], written(batch, output.logprobs.grad)[0]


@pytest.mark.parametrize(
    ("policy", "advantage", "objective", "gradient"),
    [
        (0.22, 1.0, 2.2, 2.2),  # w 2, r 1.1
        (0.30, 1.0, 2.4, 0.0),  # w 2, r 1.5 clipped at 1.2
        (0.10, -1.0, -1.6, 0.0),  # w 2, r 0.5 clipped at 0.8
        (0.80, -1.0, -8.0, -8.0),  # w 2, r 4: the bad side is unbounded
    ],
)
def test_hand_worked_numbers(policy: float, advantage: float, objective: float, gradient: float) -> None:
    assert one_token(Decoupled(), policy, advantage) == pytest.approx((objective, gradient), abs=1e-12)


def test_dual_clip_bounds_the_bad_side() -> None:
    assert one_token(Decoupled(dual=3.0), 0.8, -1.0) == pytest.approx((-6.0, 0.0))  # w 2 * c 3


def test_a_weight_above_the_cap_masks_the_token_and_keeps_the_denominator() -> None:
    assert one_token(Decoupled(), 0.45, anchor=0.45)[0] == pytest.approx(4.5)
    assert one_token(Decoupled(), 0.60, anchor=0.60) == (0.0, 0.0)
    batch = make_batch([[log(0.1), log(0.1)]])  # share 1/2 each
    batch.fill("proximal", lay_out([[log(0.1), log(0.9)]], float("nan")))
    value, metrics = Decoupled()(say([[log(0.1), log(0.9)]]), batch)
    assert float((batch.share * value.detach()).sum()) == pytest.approx(-0.5)  # not -1: the masked token still counts
    assert metrics == pytest.approx({"clipped_share": 0.0, "masked_share": 0.5})


def random_batch(seed: int, num_tokens: int = 64) -> tuple[Batch, Tensor]:
    random = torch.Generator().manual_seed(seed)
    numbers = -3 * torch.rand(3, num_tokens, dtype=torch.float64, generator=random)
    batch = make_batch([numbers[0].tolist()])
    batch.advantages = torch.randn(num_tokens + 1, dtype=torch.float64, generator=random)
    batch.fill("proximal", lay_out([numbers[1].tolist()], float("nan")))
    return batch, lay_out([numbers[2].tolist()])


def test_an_anchor_equal_to_the_behaviour_policy_is_ppo_bit_for_bit() -> None:
    for seed in range(5):
        batch, policy = random_batch(seed)
        batch.fill("proximal", batch.behavior_logprobs.clone())
        found = []
        for loss in (Decoupled(dual=3.0), Clip(dual=3.0)):
            output = say([[]])
            output.logprobs = policy.clone().requires_grad_()
            value, _ = loss(output, batch)
            (batch.share * value).sum().backward()
            assert output.logprobs.grad is not None
            found.append((value.detach(), output.logprobs.grad))
        assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])


def test_it_is_an_anchored_clip_times_a_correction_up_to_the_anchor() -> None:
    for seed in range(5):
        batch, policy = random_batch(seed)
        output = say([[]])
        output.logprobs = policy
        whole, _ = Decoupled()(output, batch)
        clip, _ = Clip(anchor="proximal")(output, batch)
        weight = Masked(0.0, 5.0, target="proximal")(policy, batch)
        torch.testing.assert_close(whole, weight * clip, rtol=1e-14, atol=0)


@pytest.mark.parametrize(("lag", "share"), [(0, 0.0), (1, 0.0), (2, 0.5), (4, 0.75)])
def test_interpolation_only_rescales_the_clip_band(lag: int, share: float) -> None:
    # A-3PO: clip 0.2 on policy / anchor is [0.8^(1/(1-a)), 1.2^(1/(1-a))] on policy / behaviour; a 1/2: [0.64, 1.44].
    edge = 1.2 ** (1 / (1 - share))
    for ratio, is_clipped in ((0.99 * edge, False), (1.01 * edge, True)):
        batch = make_batch([[log(0.1)]])
        batch.version = lag
        _, metrics = Decoupled(anchor="interpolated", cap=100.0)(say([[log(0.1 * ratio)]]), batch)
        assert metrics["clipped_share"] == float(is_clipped)


def test_the_interpolated_anchor_is_a_constant() -> None:
    # Lag 2: the anchor is the geometric mean of 0.1 and 0.169, 0.13. w = 1.3 and r = 1.3, clipped at 1.2: 1.56 without
    # a gradient, which a moving w would have.
    batch, output = make_batch([[log(0.1)]]), say([[log(0.169)]])
    batch.version = 2
    value, _ = Decoupled(anchor="interpolated")(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([-1.56])
    assert written(batch, output.logprobs.grad) == [0.0]


def test_a_teachers_token_has_weight_one_and_no_interpolation() -> None:
    batch = make_batch([[0.0, 0.0]])
    batch.version = 4
    batch.versions = torch.full_like(batch.versions, -1)
    batch.fill("proximal", lay_out([[-9.0, -9.0]], float("nan")))
    value, _ = Decoupled()(say([[-9.0, -9.0]]), batch)
    assert written(batch, value) == [-1.0, -1.0]
    interpolated, metrics = Decoupled(anchor="interpolated")(say([[-0.1, -0.1]]), batch)
    plain, _ = Clip()(say([[-0.1, -0.1]]), batch)
    assert torch.equal(interpolated, plain) and metrics["masked_share"] == 0


def test_misuse_is_refused() -> None:
    assert Decoupled().needs == {Logprobs("proximal")} and Decoupled(anchor="interpolated").needs == frozenset()
    with pytest.raises(ConfigurationError, match="did you mean proximal"):
        Decoupled(anchor="proximl")
    with pytest.raises(ConfigurationError, match="dual > 1"):
        Decoupled(dual=0.5)
    with pytest.raises(ConfigurationError, match="no logprobs of proximal"):
        Decoupled()(say([[-1.0]]), make_batch([[-1.0]]))
