"""Adapters beside linear layers: against plain loops in float64, the merged weight, and finite differences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from strop.kernels.adapted import Adapter, adapted, adapter_pulls, state_pull

SHAPES = [(2, 5), (3, 4), (2, 1)]  # rank and width of three layers that read the same input
SCALE = 2.0


def drawn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Small multiples of 1/8: float32 adds them without rounding."""
    generator = torch.Generator().manual_seed(sum(shape))
    return (torch.randint(-12, 13, shape, generator=generator) / 8).to(dtype)


def filled(dtype: torch.dtype, inputs: int = 7) -> Adapter:
    adapter = Adapter.empty(torch.zeros(1, inputs), SHAPES, dtype, SCALE)
    for index, part in enumerate(adapter.parts):
        part.copy_(drawn(len(part), part.shape[1] + index)[:, : part.shape[1]])
    return adapter


def looped(state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter, dtype: torch.dtype) -> Tensor:
    """Each layer by itself, number by number, rounded to `dtype` at the four places, as peft does."""

    def rounded(number: float) -> float:
        return float(torch.tensor(number, dtype=torch.float64).to(dtype))

    parts, found, top = adapter.parts, torch.empty(len(state), len(weight), dtype=torch.float64), 0
    for down, up in zip(parts[::2], parts[1::2], strict=True):
        for token in range(len(state)):
            row = state[token].double().tolist()
            middle = [rounded(sum(x * a for x, a in zip(row, each.tolist(), strict=True))) for each in down.double()]
            for place in range(len(up)):
                beside = sum(m * b for m, b in zip(middle, up[place].double().tolist(), strict=True))
                plain = sum(x * w for x, w in zip(row, weight[top + place].double().tolist(), strict=True))
                whole = rounded(plain + (0.0 if bias is None else float(bias[top + place])))
                found[token, top + place] = rounded(whole + rounded(SCALE * beside))
        top += len(up)
    return found


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_it_is_rounded_at_four_places(dtype: torch.dtype) -> None:
    state, weight, adapter = drawn(6, 7, dtype=dtype), drawn(10, 7, dtype=dtype), filled(dtype)
    for bias in (None, drawn(10, dtype=dtype)):
        output = adapted(state, weight, bias, adapter)
        assert torch.equal(output.double(), looped(state, weight, bias, adapter, dtype))


def test_an_empty_adapter_changes_no_bit() -> None:
    state, weight, bias = (torch.randn(shape, dtype=torch.bfloat16) for shape in ((6, 7), (10, 7), (10,)))
    adapter = Adapter.empty(torch.zeros(1, 7), SHAPES, torch.bfloat16, SCALE)
    adapter.down.normal_()
    assert torch.equal(adapted(state, weight, bias, adapter), torch.addmm(bias, state, weight.t()))


def test_it_is_the_merged_weight() -> None:
    """y = x (W + s B A)', each layer with its own A and B alone."""
    state, weight, adapter = drawn(6, 7), drawn(10, 7), filled(torch.float64)
    parts = adapter.parts
    merged = torch.cat([up @ down for down, up in zip(parts[::2], parts[1::2], strict=True)]) * SCALE + weight
    torch.testing.assert_close(adapted(state, weight, None, adapter), state @ merged.t())


def test_its_gradient_is_that_of_the_merged_weight() -> None:
    """Autograd through the merged weight, and finite differences of the same sum."""
    state, weight, adapter = drawn(6, 7).requires_grad_(), drawn(10, 7), filled(torch.float64)
    parts = [part.clone().requires_grad_() for part in adapter.parts]

    def total(state: Tensor, *parts: Tensor) -> Tensor:
        merged = torch.cat([up @ down for down, up in zip(parts[::2], parts[1::2], strict=True)]) * SCALE + weight
        return (state @ merged.t()).sin().sum()

    assert torch.autograd.gradcheck(total, (state, *parts))
    wanted = torch.autograd.grad(total(state, *parts), (state, *parts))
    with torch.no_grad():
        d_output = adapted(state, weight, None, adapter).cos()
        d_state, d_middle = state_pull(d_output, weight, adapter)
        found = [d_state, *adapter_pulls(d_output, d_middle, state, adapter, torch.float64)]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_layers_of_one_input_lie_below_one_another_and_along_a_diagonal() -> None:
    adapter = filled(torch.float64)
    parts = adapter.parts
    assert [tuple(part.shape) for part in parts] == [(2, 7), (5, 2), (3, 7), (4, 3), (2, 7), (1, 2)]
    assert torch.equal(adapter.down, torch.cat(parts[::2]))
    assert torch.equal(adapter.up, torch.block_diag(*parts[1::2]))


@pytest.mark.parametrize("rank", [1, 7])
@pytest.mark.parametrize("has_bias", [True, False])
def test_in_bfloat16_it_is_what_peft_computes(rank: int, has_bias: bool) -> None:
    """To the bit, of layers that read one input; gradients, which peft sums in float32 and rounds, nearly."""
    peft = pytest.importorskip("peft")
    torch.manual_seed(rank)
    layers = torch.nn.ModuleDict({name: torch.nn.Linear(24, width, has_bias) for name, width in (("q", 8), ("k", 5))})
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=["q", "k"], init_lora_weights=False)
    theirs = peft.get_peft_model(layers.bfloat16(), config, autocast_adapter_dtype=False).base_model.model
    masters = [theirs[name].get_parameter(f"lora_{side}.default.weight") for name in "qk" for side in "AB"]
    adapter = Adapter.empty(masters[0].detach(), [(rank, 8), (rank, 5)], torch.bfloat16, 2.0)
    for part, master in zip(adapter.parts, masters, strict=True):
        part.copy_(master.detach())
    weight = torch.cat([theirs[name].base_layer.weight.detach() for name in "qk"])
    bias = torch.cat([theirs[name].base_layer.bias.detach() for name in "qk"]) if has_bias else None
    state, d_output = torch.randn(13, 24).bfloat16().requires_grad_(), torch.randn(13, 13).bfloat16()
    wanted = torch.cat([theirs[name](state) for name in "qk"], 1)
    wanted.backward(d_output)
    with torch.no_grad():
        assert torch.equal(adapted(state, weight, bias, adapter), wanted)
        d_state, d_middle = state_pull(d_output, weight, adapter)
        found = [d_state, *adapter_pulls(d_output, d_middle, state, adapter, torch.float32)]
    for one, other in zip(found, [state, *masters], strict=True):
        assert float((one - other.grad).norm() / other.grad.norm()) < 1e-2
