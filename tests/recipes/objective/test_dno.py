from __future__ import annotations

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.objective.dno import Dno, win_rates
from strop.training.losses.preference_pairs import Dpo
from tests.building import Said, lay_out, make_batch, say, written

OLD = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
BEATS = torch.tensor([[0.5, 0.9, 0.2], [0.1, 0.5, 0.9], [0.8, 0.1, 0.5]], dtype=torch.float64)


def fit(old: Tensor, rates: list[float], eta: float) -> list[float]:
    """The minimiser over pairs drawn from the old policy, with win rates as rewards."""
    theta = old.log().clone().requires_grad_()
    optimizer = torch.optim.LBFGS([theta], max_iter=500, tolerance_grad=1e-13, tolerance_change=1e-16)
    pairs = [(i, j) for i in range(len(rates)) for j in range(len(rates)) if i < j]

    def closure() -> Tensor:
        optimizer.zero_grad()
        total = theta.new_zeros(())
        for i, j in pairs:
            batch = make_batch([[0.0], [0.0]], rewards=[rates[i], rates[j]])
            batch.fill("old", lay_out([[float(old[k].log())] for k in (i, j)]))
            own, nothing = theta.log_softmax(0), theta.new_zeros(())
            logprobs = torch.stack([nothing, own[i], nothing, own[j]])
            value, _ = Dno(eta, is_rated=True)(Said(logprobs, torch.zeros_like(logprobs)), batch)
            total = total + float(old[i] * old[j]) * (batch.share * value).sum()
        total.backward()
        return total

    optimizer.step(closure)
    return theta.detach().softmax(0).tolist()


def test_one_exact_step_by_hand() -> None:
    # r = P pi = (.56, .38, .53); pi_t * exp(r / .5) normalised.
    rates = (BEATS @ OLD).tolist()
    assert rates == pytest.approx([0.56, 0.38, 0.53])
    assert fit(OLD, rates, 0.5) == pytest.approx([0.557006, 0.233166, 0.209828], abs=1e-5)


def test_rock_paper_scissors_stays_where_it_is() -> None:
    game = torch.tensor([[0.5, 0.0, 1.0], [1.0, 0.5, 0.0], [0.0, 1.0, 0.5]], dtype=torch.float64)
    uniform = torch.full((3,), 1 / 3, dtype=torch.float64)
    assert fit(uniform, (game @ uniform).tolist(), 0.3) == pytest.approx([1 / 3] * 3, abs=1e-6)


def test_win_rates_count_siblings_only_and_ties_by_half() -> None:
    batch = make_batch([[0.0]] * 5, groups=[0, 0, 0, 1, 1], rewards=[2.0, 1.0, 1.0, 9.0, 7.0])
    everybody = torch.ones(5, dtype=torch.bool)
    assert win_rates(batch, everybody).tolist() == pytest.approx([2.5 / 3, 1 / 3, 1 / 3, 0.75, 0.25])


def test_softly_a_demonstration_is_no_opponent_but_with_a_margin_it_is() -> None:
    # Own rewards 1 and 0, the demonstration's 1: against own rollouts 0.75, 0.25 and 0.75; against all three the
    # two right ones have (1 + 0.5 + 0.5) / 3 and the wrong one 0.5 / 3.
    batch = make_batch([[-1.0]] * 3, rewards=[1.0, 0.0, 1.0], share=[[1.0], [0.0], [0.0]])
    batch.fill("old", batch.behavior_logprobs)
    batch.versions = torch.where(batch.rollouts == 2, -1, batch.versions)
    for share, rates in enumerate(([0.75, 2 / 3], [0.25, 1 / 6], [0.75, 2 / 3])):
        batch.share = lay_out([[float(share == rollout)] for rollout in range(3)])
        found = [loss(say([[-1.0]] * 3), batch)[1]["win_rate"] for loss in (Dno(), Dno(margin=0.1))]
        assert found == pytest.approx(rates)
    batch.versions = torch.full_like(batch.versions, -1)  # nobody to be compared with
    assert Dno()(say([[-1.0]] * 3), batch)[1]["win_rate"] == 0.0


def test_with_certain_winners_it_is_dpo_against_the_policy_that_wrote() -> None:
    policy = [[-1.0, -0.3], [-2.0]]
    batch = make_batch(policy, rewards=[1.0, 0.0], reference=[[-0.5, -0.6], [-1.0]])
    batch.fill("old", batch.logprobs["reference"])
    ours, theirs = say(policy), say(policy)
    Dno(0.3, margin=0.5)(ours, batch)[0].sum().backward()
    Dpo(0.3, against="old")(theirs, batch)[0].sum().backward()
    assert written(batch, ours.logprobs.grad) == pytest.approx(written(batch, theirs.logprobs.grad))
    value, _ = Dno(0.3, margin=0.6)(say(policy), batch)  # win rates are 0.75 and 0.25
    assert not value.any()


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="margin > 0 or none, got 0"):
        Dno(margin=0.0)
    with pytest.raises(ConfigurationError, match="no policy 'oldest'"):
        Dno(against="oldest")
