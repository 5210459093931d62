from __future__ import annotations

from math import log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.objective.calibrl import Calibrated
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from tests.building import Said, lay_out, make_batch, say, written

# a right and a wrong rollout of three tokens, then a demonstration of two, whose log-probabilities are -1 and -2
POLICY = [[-0.5, -3.0, -1.0], [-0.5, -3.0, -1.0], [-0.1, -0.1]]


def scene() -> tuple[Batch, Said]:
    batch = make_batch(POLICY, rewards=[1.0, 0.0, 1.0])
    batch.versions = torch.where(batch.rollouts == 2, -1, batch.versions)
    batch.fill("proximal", lay_out([[-9.0] * 3, [-9.0] * 3, [-1.0, -2.0]], float("nan")))
    return batch, say(POLICY)


def gradient(loss: Calibrated) -> list[float]:
    batch, output = scene()
    loss(output, batch)[0].sum().backward()
    return written(batch, output.logprobs.grad)


def test_the_guide_by_hand() -> None:
    # Own mean reward 0.5: |A| = 0.5 on both. Right and above the expert: -a, below: -1; wrong and above: +1, below: +a.
    # The third token is beyond the expert's end. The ratio is 1, so the surrogate adds -A.
    surrogate = [-0.5] * 3 + [0.5] * 3
    guide = [-0.25, -0.5, 0.0, 0.5, 0.25, 0.0]
    expected = [s + 0.1 * g for s, g in zip(surrogate, guide, strict=True)]
    assert gradient(Calibrated()) == pytest.approx([*expected, 0.0, 0.0])


def test_without_guidance_it_is_ppo_clipping_on_sampled_rollouts_only() -> None:
    batch, output = scene()
    batch.advantages = lay_out([[0.5] * 3, [-0.5] * 3, [0.0] * 2])
    Clip(dual=3.0)(output, batch)[0].sum().backward()
    assert gradient(Calibrated(guidance=0.0)) == pytest.approx(written(batch, output.logprobs.grad))


def test_sampled_rollouts_are_clipped_on_both_sides_and_dual_clipped() -> None:
    # A = 0.5 and -0.5. Right: r = 1.3 is clipped to 1.2, 1.1 is not. Wrong: r = 2 is not clipped, r = 5 is clipped to
    # 3 (dual clip), r = 0.7 to 0.8.
    ratios = [[1.3, 1.1, 1.0], [2.0, 5.0, 0.7], [1.0, 1.0]]
    batch, output = scene()
    log_ratios = lay_out([[log(ratio) for ratio in each] for each in ratios])
    batch.behavior_logprobs = output.logprobs.detach() - log_ratios
    value, _ = Calibrated(guidance=0.0)(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([-0.6, -0.55, -0.5, 1.0, 1.5, 0.4, 0.0, 0.0])
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0, -0.55, -0.5, 1.0, 0.0, 0.0, 0.0, 0.0])


def test_with_slope_1_the_push_is_constant() -> None:
    found = gradient(Calibrated(guidance=1.0, slope=1.0))
    assert found[:2] == pytest.approx([-1.0, -1.0]) and found[3:5] == pytest.approx([1.0, 1.0])


def test_without_a_demonstration_nothing_is_guided() -> None:
    batch, output = scene()
    batch.versions = torch.zeros_like(batch.versions)
    _, metrics = Calibrated()(output, batch)
    assert metrics["guided_share"] == 0.0
    del batch.logprobs["proximal"]
    with pytest.raises(ConfigurationError, match="proximal"):
        Calibrated()(output, batch)
