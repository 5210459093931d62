from __future__ import annotations

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.distill.kdrl import Kdrl
from strop.training.losses.imitation.distillation import Distillation
from strop.training.requirements import Logprobs
from tests.building import Said, lay_out, make_batch, say, written


def test_by_hand_with_its_schedule() -> None:
    # d = log pi - log teacher = (0.5, -1): k2 = (0.125, 0.5), gradient d; beta falls from 5e-3 to 1e-3 by 5e-5 a step.
    for step, beta in ((0, 5e-3), (40, 3e-3), (900, 1e-3)):
        batch, output = make_batch([[0.0], [0.0]], rewards=[1.0, 0.0]), say([[-1.0], [-2.0]])
        batch.fill("T", lay_out([[-1.5], [-1.0]]))
        batch.version = step
        value, metrics = Kdrl("T")(output, batch)
        value.sum().backward()
        assert written(batch, value) == pytest.approx([beta * 0.125, beta * 0.5])
        assert written(batch, output.logprobs.grad) == pytest.approx([beta * 0.5, -beta])
        assert metrics["teacher_kl"] == pytest.approx(-0.25)


@pytest.mark.parametrize(
    ("mask", "kept"), [("none", [1, 1, 1, 1]), ("response", [0, 1, 1, 1]), ("group", [0, 0, 1, 1])]
)
def test_masks_key_on_who_was_right(mask: str, kept: list[int]) -> None:
    batch = make_batch([[0.0]] * 4, groups=[0, 0, 1, 1], rewards=[1.0, 0.0, 0.0, 0.5])
    batch.fill("T", lay_out([[-2.0]] * 4))
    value, _ = Kdrl("T", mask=mask, start=2.0, floor=2.0)(say([[-1.0]] * 4), batch)
    assert written(batch, value) == pytest.approx(kept)  # beta 2 * d^2 / 2 = 1


def expected_gradient(loss: object, theta: Tensor, teacher: Tensor) -> Tensor:
    """Over all three tokens, each as likely as the policy makes it."""
    total = torch.zeros_like(theta)
    for token, probability in enumerate(theta.softmax(0).detach().tolist()):
        batch = make_batch([[0.0]])
        batch.fill("T", lay_out([[float(teacher.log_softmax(0)[token])]]))
        logprobs = torch.stack([theta.new_zeros(()), theta.log_softmax(0)[token]])
        value, _ = loss(Said(logprobs, torch.zeros_like(logprobs)), batch)  # type: ignore[operator]
        total += probability * torch.autograd.grad(value.sum(), theta)[0]
    return total


def test_estimators_have_the_gradients_of_their_divergences() -> None:
    theta = torch.tensor([0.3, -1.0, 0.8], dtype=torch.float64, requires_grad=True)
    teacher = torch.tensor([-0.5, 0.2, 1.1], dtype=torch.float64)
    own, other = theta.log_softmax(0), teacher.log_softmax(0)
    (reverse,) = torch.autograd.grad((own.exp() * (own - other)).sum(), theta, retain_graph=True)
    (forward,) = torch.autograd.grad((other.exp() * (other - own)).sum(), theta)
    plain = {"start": 1.0, "floor": 1.0}
    torch.testing.assert_close(expected_gradient(Kdrl("T", "k2", **plain), theta, teacher), reverse, atol=1e-9, rtol=0)
    torch.testing.assert_close(expected_gradient(Kdrl("T", "k3", **plain), theta, teacher), forward, atol=1e-9, rtol=0)
    # distillation as a policy gradient is the reverse one, too
    torch.testing.assert_close(expected_gradient(Distillation("T"), theta, teacher), reverse, atol=1e-9, rtol=0)


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no estimator 'k1'"):
        Kdrl("T", "k1")
    with pytest.raises(ConfigurationError, match="no mask 'all'"):
        Kdrl("T", mask="all")
    for loss in (Kdrl("T"), Distillation("T")):
        assert loss.needs == {Logprobs("T")}
        with pytest.raises(ConfigurationError, match="no logprobs of T"):
            loss(say([[-1.0]]), make_batch([[0.0]]))
