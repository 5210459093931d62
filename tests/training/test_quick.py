"""The quick forward gives the loss and the gradients of the slow one for each comparison group, and says where it
cannot.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Olmo2Config,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from strop.errors import ConfigurationError
from strop.kernels.cpu.train import compiled
from strop.models.layers.block import why_slow
from strop.models.layers.eight_bit_linear import in_eight_bits
from strop.models.model import load_model
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.machine.llama import llama_forward
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Metrics
from tests.training.tiny import VOCABULARY, make_rollout, make_turn, random_groups, save_gpt2, save_llama

OBJECTIVE = Objective((Clip(), Entropy(weight=0.1)))
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}
_WINDOWS = {"head_dim": 16, "sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"] * 2}
_WINDOWS |= {"layer_types": _WINDOWS["layer_types"][:3], "pad_token_id": None}
_TURNS = {
    "full_attention": {"rope_type": "default", "rope_theta": 100.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10.0},
}
_EXPERTS = {"head_dim": 16, "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 24}
_EXPERTS |= {"mlp_only_layers": [1], "norm_topk_prob": False}
FAMILIES: dict[str, Any] = {
    "llama": LlamaConfig(**SHAPE),
    "llama_compiled": LlamaConfig(**SHAPE, head_dim=16),  # attention has this size on a CPU
    "llama_tied": LlamaConfig(**SHAPE, tie_word_embeddings=True),
    "mistral": MistralConfig(**SHAPE, head_dim=16, sliding_window=5),
    "mistral_wide": MistralConfig(**SHAPE, head_dim=16, sliding_window=50),  # which no sequence leaves
    "phi3": Phi3Config(**SHAPE, pad_token_id=0, eos_token_id=1),  # fused projections
    "olmo2": Olmo2Config(**SHAPE, eos_token_id=1),  # norms behind its parts, and of all heads together
    "qwen2": Qwen2Config(**SHAPE),  # biases
    "qwen2_window": Qwen2Config(**SHAPE, use_sliding_window=True, sliding_window=4, max_window_layers=1),
    "qwen3": Qwen3Config(**SHAPE, head_dim=16),  # norms of heads
    "mixtral": MixtralConfig(**SHAPE, sliding_window=None, num_local_experts=4),  # experts
    "qwen3_moe": Qwen3MoeConfig(**SHAPE, **_EXPERTS),  # experts in some layers
    # norms before and behind, soft caps of scores and logits, windows in some layers, scaled embeddings
    "gemma2": Gemma2Config(**SHAPE, **_WINDOWS, attn_logit_softcapping=5.0, final_logit_softcapping=3.0),
    # norms of heads, and another rotation where there is a window
    "gemma3": Gemma3TextConfig(**SHAPE, **_WINDOWS, rope_parameters=_TURNS),
}


def siblings() -> list[Group]:
    """Rollouts that begin with the same prompt, one of them wholly within another."""
    prompt, words = [1, 2, 3, 4, 5], [7, 8, 9, 10, 11, 12]
    rollouts = [
        make_rollout(str(i), [make_turn(prompt, words[:n], temperature=t)], advantage=a)
        for i, (n, t, a) in enumerate([(6, 1.0, 1.0), (3, 0.7, -1.0), (5, 1.0, 0.5)])
    ]
    return [Group(0, rollouts[0].task, rollouts)]


def trained(folder: Path, groups: list[Group], **settings: Any) -> tuple[Tensor, Metrics, dict[str, Tensor]]:
    """Logprobs before a step, its gradient and its metrics."""
    trainer = TorchTrainer(clip_norm=None, chunk=16, **settings)
    trainer.open(folder, 0)
    batches = pack(groups, TokenMean(), 0, 60)
    trainer.annotate(batches, frozenset({Logprobs("proximal")}))
    logprobs = torch.cat([batch.logprobs["proximal"] for batch in batches])
    gradients = trainer.gradient(batches, OBJECTIVE)
    assert gradients.keys() == trainer.weights().keys()
    return logprobs, trainer.step(batches, OBJECTIVE), gradients


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("groups", [siblings(), random_groups()], ids=["siblings", "random"])
def test_it_is_the_slow_path(family: str, groups: list[Group], tmp_path: Path) -> None:
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(FAMILIES[family]).save_pretrained(tmp_path)
    slow, slow_metrics, slow_gradients = trained(tmp_path, groups, fused="off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick, metrics, gradients = trained(tmp_path, groups, fused="on")
    torch.testing.assert_close(quick, slow, rtol=1e-5, atol=1e-5)
    assert metrics == pytest.approx(slow_metrics, rel=1e-5, abs=1e-6)
    assert gradients.keys() == slow_gradients.keys()
    for name, gradient in gradients.items():
        assert float((gradient - slow_gradients[name]).norm() / slow_gradients[name].norm()) < 1e-5, name


def test_products_of_eight_bits_are_those_of_the_slow_path(tmp_path: Path) -> None:
    """Sums in another order now and then round a number to the other side: in few tokens, and by little."""
    folder = save_llama(tmp_path)
    slow, quick = (trained(folder, siblings(), fused=how, matmul_precision="fp8") for how in ("off", "on"))
    plain = trained(folder, siblings(), fused="on")

    def apart(one: Any, other: Any) -> float:
        whole = torch.cat([gradient.flatten() for gradient in other[2].values()])
        return float((torch.cat([one[2][name].flatten() for name in other[2]]) - whole).norm() / whole.norm())

    gaps, moves = ((quick[0] - other[0])[quick[0] != 0].abs() for other in (slow, plain))
    assert float(gaps.median()) < 1e-5 and float(moves.median()) > 1e-2
    assert apart(quick, slow) < 0.01 < 0.02 < apart(quick, plain)
    sizes = {"vocab_size": 512, "hidden_size": 192, "intermediate_size": 768, "num_hidden_layers": 6}
    wild = LlamaConfig(**sizes, num_attention_heads=3, num_key_value_heads=1, initializer_range=0.2, eos_token_id=1)
    AutoModelForCausalLM.from_config(wild).save_pretrained(tmp_path / "wild")
    model = load_model(tmp_path / "wild")
    in_eight_bits(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert llama_forward(model, torch.bfloat16, says_why_not=True) is not None
    assert quick[1]["fp8/rounding"] == slow[1]["fp8/rounding"] > 0.01


def test_computing_layers_again_changes_no_bit(tmp_path: Path) -> None:
    folder = save_llama(tmp_path)
    kept, again = (trained(folder, siblings(), fused="on", checkpointing=how) for how in ("off", "on"))
    assert kept[1] == again[1]
    assert all(torch.equal(kept[2][name], again[2][name]) for name in kept[2])


def test_it_follows_the_weights(tmp_path: Path) -> None:
    """Copies are made anew after every step, for the policy and for weights put into the scratch model."""
    folder = save_llama(tmp_path)
    runs = []
    for fused in ("off", "on"):
        trainer = TorchTrainer(learning_rate=1e-2, chunk=16, fused=fused, average_window=2)
        trainer.open(folder, 0)
        rows = []
        for version in range(3):
            batches = pack(random_groups(seed=version), TokenMean(), version, 60)
            trainer.annotate(batches, frozenset({Logprobs("averaged"), Logprobs("reference")}))
            rows.append(trainer.step(batches, OBJECTIVE)["loss"])
            rows += [float(batches[0].logprobs["averaged"].sum()), float(batches[0].logprobs["reference"].sum())]
        runs.append(rows)
    assert runs[0] == pytest.approx(runs[1], rel=1e-3)
    assert runs[0][0] != pytest.approx(runs[0][3], rel=1e-2)


def test_another_comparison_group_says_that_it_is_slow(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="GPT2LMHeadModel trains on the slow path") as caught:
        trained(save_gpt2(tmp_path), random_groups(), fused="on")
    assert len([each for each in caught if "slow path" in str(each.message)]) == 1
    with pytest.raises(ConfigurationError, match="did you mean"):
        TorchTrainer(fused="of")


def test_it_is_taken_by_itself_where_it_pays(tmp_path: Path) -> None:
    """On a CPU with a compiler, without a word where there is none or the comparison group is another."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_itself = trained(save_llama(tmp_path / "llama"), siblings())
        trained(save_gpt2(tmp_path / "gpt2"), random_groups())
    asked = trained(tmp_path / "llama", siblings(), fused="off" if compiled() is None else "on")
    assert torch.equal(by_itself[0], asked[0]) and by_itself[1] == asked[1]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (LlamaConfig(**SHAPE, hidden_act="relu"), "its activation is relu"),
        (LlamaConfig(**SHAPE, attention_dropout=0.1), r"it has dropout \(0.1\)"),
        (Gemma3TextConfig(**SHAPE, **_WINDOWS, use_bidirectional_attention=True), "its attention looks ahead"),
        (Phi3Config(**SHAPE, pad_token_id=0, partial_rotary_factor=0.5), "only 0.5 of each head turns"),
    ],
)
def test_what_the_description_cannot_tell_is_named(config: Any, why: str, tmp_path: Path) -> None:
    config.architectures = [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config.model_type]]
    config.save_pretrained(tmp_path)
    assert re.match(why, why_slow(tmp_path))
