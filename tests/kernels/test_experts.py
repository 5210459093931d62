"""Experts against plain loops in float64, and their gradients, the router's too, against finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from strop.kernels.experts import by_expert, mixed, on_all_rows, route
from strop.models.layers.block import RoutedExperts
from strop.training.machine.feed_forward import RoutedFeed

TOKENS, HIDDEN, EXPERTS, INNER, EACH = 5, 4, 4, 3, 2


def weights() -> list[Tensor]:
    """A state, a router, gate and up, and down."""
    torch.manual_seed(0)
    shapes = ((TOKENS, HIDDEN), (EXPERTS, HIDDEN), (EXPERTS, 2 * INNER, HIDDEN), (EXPERTS, HIDDEN, INNER))
    return [torch.randn(shape, dtype=torch.float64) for shape in shapes]


def activated(number: float, is_gelu: bool) -> float:
    if is_gelu:
        return 0.5 * number * (1 + math.tanh(math.sqrt(2 / math.pi) * (number + 0.044715 * number**3)))
    return number / (1 + math.exp(-number))


def looped(given: list[Tensor], taken: list[list[int]], is_normalised: bool, is_gelu: bool) -> list[list[float]]:
    """What is added for each token, number by number."""
    states, router, gate_up, down = (each.tolist() for each in given)
    found = []
    for state, chosen in zip(states, taken, strict=True):
        likings = [math.exp(sum(a * b for a, b in zip(state, row, strict=True))) for row in router]
        shares = [likings[expert] / sum(likings) for expert in chosen]
        total, added = sum(shares) if is_normalised else 1.0, [0.0] * HIDDEN
        for expert, share in zip(chosen, shares, strict=True):
            opened = [sum(a * b for a, b in zip(state, row, strict=True)) for row in gate_up[expert]]
            inner = [activated(opened[i], is_gelu) * opened[INNER + i] for i in range(INNER)]
            for place, row in enumerate(down[expert]):
                added[place] += share / total * sum(a * b for a, b in zip(row, inner, strict=True))
        found.append(added)
    return found


@pytest.mark.parametrize("is_gelu", [True, False])
@pytest.mark.parametrize("is_normalised", [True, False])
def test_forward_and_gradients(is_normalised: bool, is_gelu: bool) -> None:
    given, taken = weights(), torch.tensor([[3, 0], [1, 2], [0, -1], [4, 1], [2, 3]])  # two of them are made anew
    how = (EACH, is_normalised, is_gelu)
    learned = RoutedExperts(*(each.clone().requires_grad_() for each in given[1:]), *how)
    feed, pull = RoutedFeed(learned, RoutedExperts(*given[1:], *how), 1), torch.randn(TOKENS, HIDDEN).double()
    with torch.no_grad():
        kept, chosen = feed.opened(given[0], torch.cat((torch.zeros(TOKENS, 1).long(), taken), 1))
        added = feed.closed(kept, chosen)
        d_state, rest = feed.back(pull, kept, chosen)
    is_known = (taken >= 0) & (taken < EXPERTS)
    assert torch.equal(chosen[is_known], taken[is_known]) and bool((chosen >= 0).all() and (chosen < EXPERTS).all())
    likeliest = (given[0] @ given[1].t()).topk(EACH).indices
    assert torch.equal(chosen[~is_known], likeliest[~is_known])
    assert added.tolist() == [pytest.approx(row) for row in looped(given, chosen.tolist(), is_normalised, is_gelu)]

    def total(state: Tensor, router: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
        found, shares = route(state, router, EACH, is_normalised, chosen)
        return (mixed(state, found, shares, gate_up, down, is_gelu) * pull).sum()

    free = [each.clone().requires_grad_() for each in given]
    assert torch.autograd.gradcheck(total, free)
    wanted = torch.autograd.grad(total(*free), free)
    for one, other in zip([d_state, *feed.gradients(rest, given[0])], wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_a_router_that_does_not_learn_passes_its_pull_on() -> None:
    """Experts are likewise free to stand still: nobody asks for their gradient, and the state's is the same."""
    given, how = weights(), (EACH, True, False)
    still, cast = RoutedExperts(*given[1:], *how), RoutedExperts(*given[1:], *how)
    learned = RoutedExperts(*(each.clone().requires_grad_() for each in given[1:]), *how)
    found = []
    for feed in (RoutedFeed(still, cast, 0), RoutedFeed(learned, cast, 0)):
        kept, chosen = feed.opened(given[0], None)
        found.append(feed.back(torch.ones(TOKENS, HIDDEN).double(), kept, chosen))
    assert torch.equal(found[0][0], found[1][0]) and (len(found[0][1]), len(found[1][1])) == (0, 3)


def test_narrow_states_are_liked_in_float32() -> None:
    """Summed and weighed in float32, and pulls are rounded at the end."""
    state, router = (each.bfloat16() for each in weights()[:2])
    free = [each.clone().requires_grad_() for each in (state, router)]
    chosen, shares = route(*free, EACH, is_normalised=False)
    wide = [each.float().requires_grad_() for each in (state, router)]
    wanted = (wide[0] @ wide[1].t()).softmax(-1)
    assert shares.dtype == torch.float32 and torch.equal(shares, wanted.gather(1, chosen))
    pulls = torch.autograd.grad(shares.sin().sum(), free)
    exact = torch.autograd.grad(wanted.gather(1, chosen).sin().sum(), wide)
    for one, other in zip(pulls, exact, strict=True):
        assert one.dtype == torch.bfloat16 and torch.equal(one, other.bfloat16())


def test_every_expert_on_every_row_is_each_on_its_own() -> None:
    """Exactly: experts without rows among them, first and last ones too."""
    rows, experts = torch.randn(6, 4).double(), torch.randn(5, 3, 4).double()
    for counts in ([2, 0, 3, 1, 0], [0, 6, 0, 0, 0], [1, 1, 1, 1, 2]):
        owners = torch.arange(5).repeat_interleave(torch.tensor(counts))
        wanted = torch.stack([experts[owner] @ row for row, owner in zip(rows, owners, strict=True)])
        for way in (by_expert, on_all_rows):
            torch.testing.assert_close(way(rows, experts, torch.tensor(counts)), wanted)
