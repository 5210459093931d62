"""A model without a fast path is told before a run starts, with the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from transformers import GPT2Config, LlamaConfig, Phi3Config

from strop.launch.checks.warnings import warnings_of
from strop.models.layers.block import FAMILIES, why_slow
from strop.recipes.classics.grpo import grpo


def test_each_reason_is_named(tmp_path: Path) -> None:
    config = LlamaConfig(architectures=["LlamaForCausalLM"])
    turned = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.75}
    for changed, reason in (
        ({}, ""),
        ({"hidden_act": "relu"}, "its activation is relu, none of silu, gelu_pytorch_tanh"),
        ({"logit_scale": 2.0}, "its logits are scaled (logit_scale)"),
        ({"attention_dropout": 0.1}, "it has dropout (0.1)"),
    ):
        LlamaConfig(**config.to_dict() | changed).save_pretrained(tmp_path)
        assert why_slow(tmp_path) == reason
    Phi3Config(architectures=["Phi3ForCausalLM"], rope_parameters=turned).save_pretrained(tmp_path)
    assert why_slow(tmp_path) == "only 0.75 of each head turns with the position"


def test_an_unknown_family_is_told_before_a_run(tmp_path: Path) -> None:
    run = replace(grpo(), model=str(tmp_path))
    GPT2Config(architectures=["GPT2LMHeadModel"]).save_pretrained(tmp_path)
    (told,) = [each for each in warnings_of(run) if "slow path" in each]
    assert told == (
        f"{tmp_path} takes the slow path of generation and training: GPT2LMHeadModel is none of {', '.join(FAMILIES)}"
    )
    LlamaConfig(architectures=["LlamaForCausalLM"]).save_pretrained(tmp_path)
    assert not [each for each in warnings_of(run) if "slow path" in each]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_docs_name_every_family(family: str) -> None:
    page = (Path(__file__).parents[3] / "docs/one-gpu-and-adapters.md").read_text()
    name = family.removesuffix("ForCausalLM").lower()
    assert name in page.lower().replace(" ", "").replace("-", "")
