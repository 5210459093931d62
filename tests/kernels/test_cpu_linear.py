"""Products of a training step on a CPU are those of float64, whatever the shapes, rows beside them and threads."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from strop.kernels.cpu.linear import Linear, compiled
from strop.kernels.cpu.panels import panels_for
from strop.models.loading.model_names import POCKET
from strop.models.model import load_model
from strop.training.machine.llama import llama_forward
from strop.training.machine.projection import PanelProjection, Projection

pytestmark = pytest.mark.skipif(compiled() is None, reason="there is no C compiler, or no processor that it is for")

SHAPES = ((1, 1, 1), (3, 5, 7), (8, 32, 32), (65, 33, 31), (130, 256, 107), (257, 48, 96), (600, 17, 130))  # T, I, O


def products() -> Linear:
    found = compiled()
    assert found is not None
    return found


def packed(weight: Tensor) -> Tensor:
    panels = panels_for(weight).fill_(torch.nan)  # whatever was there
    products().pack(weight, panels)
    return panels


def close(found: Tensor, exact: Tensor) -> bool:
    return bool((found - exact).abs().max() <= 2e-6 * exact.abs().max())


@pytest.mark.parametrize(("tokens", "inner", "outer"), SHAPES)
def test_products_and_gradients_are_those_of_float64(tokens: int, inner: int, outer: int) -> None:
    torch.manual_seed(tokens)
    state, weight, bias = torch.randn(tokens, inner), torch.randn(outer, inner), torch.randn(outer)
    d_output = torch.randn(tokens, outer)
    found = products().product(state, packed(weight), outer, bias)
    assert close(found, state.double() @ weight.double().t() + bias)
    assert close(products().product(d_output, packed(weight.t()), inner), d_output.double() @ weight.double())
    assert close(products().gradient(d_output, state), d_output.double().t() @ state.double())


def test_of_no_tokens_nothing_is_learned() -> None:
    assert products().product(torch.zeros(0, 5), packed(torch.ones(3, 5)), 3).shape == (0, 3)
    assert products().gradient(torch.zeros(0, 3), torch.zeros(0, 5)).equal(torch.zeros(3, 5))


def test_what_does_not_fit_is_refused_before_it_is_read() -> None:
    state, panels = torch.randn(6, 5), packed(torch.randn(3, 5))
    for other in (torch.randn(6, 4), state.double(), torch.randn(5, 6).t()):
        with pytest.raises(ValueError, match=r"need contiguous float32 of shapes that fit, got \(6, "):
            products().product(other, panels, 3)
    with pytest.raises(ValueError, match=r"got \(7, 3\) torch.float32, \(6, 5\) torch.float32"):
        products().gradient(torch.randn(7, 3), state)


def test_bits_depend_neither_on_rows_beside_them_nor_on_threads() -> None:
    torch.manual_seed(0)
    state, weight, d_output = torch.randn(300, 40), torch.randn(70, 40), torch.randn(300, 70)
    whole, gradient = products().product(state, packed(weight), 70), products().gradient(d_output, state)
    for first, last in ((0, 1), (63, 67), (17, 300)):
        assert products().product(state[first:last].contiguous(), packed(weight), 70).equal(whole[first:last])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert products().product(state, packed(weight), 70).equal(whole)
        assert products().gradient(d_output, state).equal(gradient)
    finally:
        torch.set_num_threads(threads)


def test_a_small_model_is_trained_by_them_and_weights_that_change_are_packed_again() -> None:
    model = load_model(POCKET)
    quick = llama_forward(model, torch.float32, says_why_not=True)
    assert quick is not None and all(isinstance(each.fused, PanelProjection) for each in quick.layers)
    state = torch.randn(5, model.config.hidden_size)
    before = quick.layers[0].fused(state)
    with torch.no_grad():
        for weight in (*quick.layers[0].fused.weights, *quick.layers[0].output.weights):
            weight += torch.randn_like(weight)
    assert quick.layers[0].fused(state).equal(before)  # until it is told
    quick.rounding.refresh()
    for projection in (quick.layers[0].fused, quick.layers[0].output):
        whole = torch.cat(list(projection.weights)).detach().double()
        given = torch.randn(5, whole.shape[1])
        assert close(projection(given), given.double() @ whole.t())
        d_output = torch.randn(5, len(whole))
        assert close(projection.back(d_output)[0], d_output.double() @ whole)


def test_models_of_many_weights_and_other_types_keep_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(POCKET)
    monkeypatch.setattr("strop.training.machine.llama._SMALL", 1000)
    quick = llama_forward(model, torch.float32, says_why_not=True)
    assert quick is not None and type(quick.layers[0].fused) is Projection
    monkeypatch.undo()
    wide = llama_forward(copy.deepcopy(model), torch.bfloat16, says_why_not=True)
    assert wide is not None and type(wide.layers[0].fused) is Projection
