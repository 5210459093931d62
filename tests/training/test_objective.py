"""What one step minimizes: weights, shares and corrections together, and metrics about the policy."""

from __future__ import annotations

from math import log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.objective.echo_env import Echo
from strop.training.batch import ORIGINS, Batch
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.preference_pairs import Dpo
from strop.training.objective import Objective
from strop.training.requirements import Logprobs
from strop.training.split_batch import split
from strop.types import Origin
from tests.building import make_batch, say, written


@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_a_teachers_token_has_the_policy_gradient_of_its_credit(advantage: float) -> None:
    # p = 0.3: taken for sampled with probability 1 its ratio would be 0.3 and its gradient 0.6, or 0 where clipped
    batch, output = make_batch([[0.0]], [advantage]), say([[log(0.3)]])
    batch.versions = torch.full_like(batch.versions, -1)
    value, metrics = Objective((Clip(),))(output, batch)
    value.backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-advantage])
    assert metrics["clipped_share"] == 0.0


def test_tokens_that_nobody_sampled_have_not_drifted() -> None:
    # One of two tokens was sampled, with half of its probability now: log-ratio log 2.
    batch, output = make_batch([[log(0.2), 0.0]]), say([[log(0.4), log(0.1)]])
    batch.versions = torch.tensor([-1, 0, -1])
    _, metrics = Objective((Likelihood(),))(output, batch)
    assert metrics["drift"] == pytest.approx(log(2) / 2)
    assert metrics["ratio"] == pytest.approx((2 + 1) / 2)
    assert metrics["kl_behavior"] == pytest.approx((2 - 1 - log(2)) / 2)


def of_origins(*origins: Origin) -> Batch:
    """One rollout of two tokens for each."""
    batch = make_batch([[log(0.5), log(0.5)] for _ in origins], [2.0] * len(origins))
    batch.origins = torch.tensor([ORIGINS.index(origin) for origin in origins])
    return batch


def test_a_loss_among_some_origins_is_about_their_rollouts_alone() -> None:
    batch = of_origins(Origin.POLICY, Origin.TEACHER, Origin.GUIDED)
    output = say([[log(0.2), log(0.3)]] * 3)
    loss = Among(Likelihood(weight=0.5), (Origin.TEACHER, Origin.GUIDED))
    value, metrics = Objective((loss,))(output, batch)
    value.backward()
    # the second and third of three rollouts; each of six tokens is a sixth of the step, at half the weight
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0, 0.0, *[-0.5 / 6] * 4])
    assert metrics["teacher+guided/nll"] == pytest.approx(-2 * (log(0.2) + log(0.3)) / 6)
    assert metrics["teacher+guided/share"] == pytest.approx(4 / 6)


def test_a_loss_among_origins_that_are_not_there_is_nothing() -> None:
    batch, output = of_origins(Origin.POLICY), say([[log(0.2), log(0.3)]])
    value, metrics = Objective((Among(Clip(), (Origin.GUIDED,)), Clip()))(output, batch)
    alone, _ = Objective((Clip(),))(output, batch)
    assert value.detach() == alone.detach() and metrics["guided/share"] == metrics["guided/ratio"] == 0.0


def test_what_a_loss_within_another_needs_is_filled() -> None:
    objective = Objective((Among(Clip(anchor="proximal"), (Origin.POLICY,)), Among(Dpo(), (Origin.TEACHER,))))
    assert objective.needs == {Logprobs("proximal"), Logprobs("reference")} and objective.scope == "group"


def test_a_loss_about_the_env_is_among_no_origins() -> None:
    with pytest.raises(ConfigurationError, match="a loss on completion tokens"):
        Among(Echo(), (Origin.POLICY,))
    with pytest.raises(ConfigurationError, match="at least 1 origin"):
        Among(Clip(), ())


def test_a_part_of_a_batch_keeps_the_origins_of_its_own_rollouts() -> None:
    origins = (Origin.POLICY, Origin.TEACHER, Origin.GUIDED, Origin.REPLAYED)
    first, second = split(of_origins(*origins), 2, "rollout")
    assert first.batch.is_of(Origin.TEACHER).tolist() == [False, True]
    assert second.batch.is_of(Origin.REPLAYED).tolist() == [False, True]
