"""What a loader must find out before it accepts a model, and what that may cost."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from strop.errors import ModelError
from strop.models.layers.attention import AttentionPlan
from strop.models.layers.mixers import mixers
from strop.models.loading.prove_forward import NUM_TOKENS, what_differs
from strop.models.model import context_length, hidden_states, load_model, logits, probe
from tests.models.state_models import MASKS_ALONE, save_state_model
from tests.tiny_models import save_tiny_model


@pytest.mark.parametrize("family", MASKS_ALONE)
def test_windows_that_only_masks_know_are_refused(tmp_path: Path, family: str) -> None:
    """The first tokens of such a model are right: a proof that stays within its window would accept it."""
    folder = save_state_model(tmp_path, family)
    with pytest.raises(ModelError, match=r"does not run right on packed sequences.*Families that run"):
        load_model(folder)


def test_windows_that_no_sequence_outgrows_are_none(tmp_path: Path) -> None:
    load_model(save_state_model(tmp_path, "phimoe", max_position_embeddings=24))


def test_windows_and_chunks_are_as_they_were_after_loading(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "window", "gemma3")
    model = load_model(folder)
    assert model.config.sliding_window == model.base_model.layers[0].self_attn.sliding_window == 5
    assert load_model(save_state_model(tmp_path / "chunk", "llama4_text")).config.attention_chunk_size == 32


def test_a_proof_costs_eight_passes_over_a_few_tokens(tmp_path: Path) -> None:
    model, seen = load_model(save_tiny_model(tmp_path, "llama")), list[int]()
    model.get_output_embeddings().register_forward_hook(lambda _, given, __: seen.append(given[0].numel() // 16))

    def read(tokens: torch.Tensor, positions: torch.Tensor, plan: AttentionPlan) -> torch.Tensor:
        return logits(model, hidden_states(model, tokens, positions, plan))

    assert what_differs(model, read, probe(model, NUM_TOKENS), context_length(model)) == ""
    assert len(seen) <= 8
    assert sum(seen) <= 36


def test_a_state_that_is_not_read_before_several_tokens_is_read_before_each(tmp_path: Path) -> None:
    """transformers' selective scan begins anew for more than one token, whatever went before."""
    assert all(each.is_stepwise for each in mixers(load_model(save_state_model(tmp_path / "jamba", "jamba"))))
    assert not any(each.is_stepwise for each in mixers(load_model(save_state_model(tmp_path / "lfm2", "lfm2"))))


def test_a_layer_that_forgets_its_state_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strop.models.layers.mixers._Cache.get_conv_state", lambda *_, **__: None)
    with pytest.raises(ModelError, match="does not run right on sequences that go on"):
        load_model(save_state_model(tmp_path, "lfm2"))


def test_a_pass_without_a_plan_is_refused(tmp_path: Path) -> None:
    model = load_model(save_state_model(tmp_path, "mamba2"))
    with pytest.raises(RuntimeError, match="needs a plan of its tokens"):
        model(input_ids=torch.tensor([[4, 5]]), use_cache=False)
