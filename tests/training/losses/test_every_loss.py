"""What must hold for all losses: finite whatever comes, and the same however a step is split."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.recipes.objective.vcpo import MinimumVariance
from strop.recipes.system.areal import Decoupled
from strop.recipes.system.tba import TrajectoryBalance
from strop.roles import Loss
from strop.training.batch import Batch
from strop.training.losses.aipo import Aipo
from strop.training.losses.cispo import Cispo
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.gspo import Gspo
from strop.training.losses.kl import Kl
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.preference_pairs import Dpo
from strop.training.losses.reinforce import Reinforce
from tests.building import make_batch, say, written

LOSSES: list[Loss] = [
    Clip(),
    Clip(dual=3.0),
    Reinforce(),
    Cispo(),
    Gspo(),
    Likelihood(),
    Dpo(),
    Kl("k1"),
    Kl("k2"),
    Kl("k3"),
    Entropy(),
    Clip(anchor="old"),
    Decoupled(),
    Decoupled(anchor="interpolated", dual=3.0),
    Aipo(),
    Aipo(is_detached=False),
    TrajectoryBalance(),
    MinimumVariance(),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)

ours = st.floats(-1000.0, 0.0)  # a policy's own log-probability; the forward pass makes it finite
theirs = st.one_of(st.floats(-1000.0, 0.0), st.just(-math.inf))
tokens = st.integers(0, 3).flatmap(lambda n: st.lists(st.tuples(ours, theirs, theirs), min_size=n, max_size=n))


def annotated(batch: Batch) -> Batch:
    """With everything a trainer could fill in; every earlier policy is the reference."""
    batch.logprobs |= dict.fromkeys(("proximal", "old", "averaged"), batch.logprobs["reference"])
    batch.score_norms = 1.0 + batch.rewards.square()
    batch.version = 3  # the tokens' own is 0
    return batch


@every_loss
@settings(max_examples=40, deadline=None)
@given(
    rollouts=st.tuples(tokens, tokens), advantage=st.floats(-1e6, 1e6), rewards=st.tuples(st.floats(-9, 9), st.just(0))
)
def test_is_finite_in_value_gradient_and_metrics(
    loss: Loss,
    rollouts: tuple[list[tuple[float, float, float]], ...],
    advantage: float,
    rewards: tuple[float, float],
) -> None:
    policy, behavior, reference = ([[token[i] for token in rollout] for rollout in rollouts] for i in range(3))
    batch = annotated(make_batch(behavior, [advantage, -advantage], rewards=rewards, reference=reference))
    output = say(policy, entropy=[[0.5] * len(rollout) for rollout in rollouts])
    value, metrics = loss(output, batch)
    (batch.share * value).sum().backward()
    assert torch.isfinite(value).all()
    assert not value[~batch.trainable].any()
    assert all(math.isfinite(metric) for metric in metrics.values())
    for leaf in (output.logprobs, output.entropy):
        assert leaf.grad is None or torch.isfinite(leaf.grad).all()


def test_log_ratios_are_held_and_a_held_token_has_no_gradient() -> None:
    # Differences 1, 29, -29, inf, and -inf - -inf = NaN.
    batch = make_batch([[-2.0, -30.0, -1.0, -math.inf, -math.inf]])
    output = say([[-1.0, -1.0, -30.0, -1.0, -math.inf]])
    ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs)
    ratio.sum().backward()
    assert ratio.tolist() == [0.0, 1.0, 20.0, -20.0, 20.0, 0.0]
    assert written(batch, output.logprobs.grad) == [1.0, 0.0, 0.0, 0.0, 0.0]


@every_loss
def test_splitting_a_step_by_groups_changes_nothing(loss: Loss) -> None:
    policy = [[-0.5, -1.0], [-2.0], [-0.1, -0.2, -0.3], [-1.5]]
    behavior = [[-0.9, -1.1], [-1.0], [-0.4, -0.1, -0.3], [-1.5]]
    reference = [[-0.7, -1.0], [-1.5], [-0.1, -0.6, -0.3], [-1.0]]
    advantages, rewards, share = [1.0, -1.0, 0.5, 2.0], [1.0, 0.0, 0.0, 1.0], 1 / 7

    def run(rollouts: list[int]) -> tuple[torch.Tensor, torch.Tensor, dict[str, float]]:
        def pick(values: list[list[float]]) -> list[list[float]]:
            return [values[i] for i in rollouts]

        batch = make_batch(
            pick(behavior),
            [advantages[i] for i in rollouts],
            [(i - rollouts[0]) // 2 for i in rollouts],
            [rewards[i] for i in rollouts],
            pick(reference),
            [[share] * len(values) for values in pick(policy)],
        )
        output = say(pick(policy), entropy=pick(behavior))
        value, metrics = loss(output, annotated(batch))
        total = (batch.share * value).sum()
        total.backward()
        gradient = output.logprobs.grad if output.logprobs.grad is not None else output.entropy.grad
        assert gradient is not None
        return total.detach(), gradient, metrics

    whole, first, second = run([0, 1, 2, 3]), run([0, 1]), run([2, 3])
    torch.testing.assert_close(whole[0], first[0] + second[0])
    torch.testing.assert_close(whole[1], torch.cat([first[1], second[1]]))
    assert whole[2] == pytest.approx({name: first[2][name] + second[2][name] for name in whole[2]})
