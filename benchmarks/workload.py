"""What both sides of a comparison work on: a model folder, a file of tasks, a reward, and how long completions get."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from strop.pocket.tokenizer import CHARACTERS, END, PAD, ROLES, TOKEN_IDS, save_tokenizer
from strop.roles import Reward
from strop.types import Group

GROUP_SIZE = 8
GROUPS_PER_STEP = 8
LEARNING_RATE = 1e-9  # too small to change how long completions get while it is measured
_IMPOSSIBLE = -30.0  # a logit
_SHORTEST = 8  # tokens, of the heavy tail


@dataclass(frozen=True)
class Workload:
    """How long completions get."""

    name: str
    max_tokens: int
    is_heavy: bool


WORKLOADS = {
    "even": Workload("even", 32, is_heavy=False),
    "heavy": Workload("heavy", 32 * _SHORTEST, is_heavy=True),
}


def prepare(folder: Path, workload: Workload) -> None:
    """Write `folder/model` and `folder/tasks.jsonl`."""
    model = _random_model()
    if workload.is_heavy:
        _give_heavy_tail(model)
    model.save_pretrained(folder / "model")
    save_tokenizer(folder / "model", model.config.max_position_embeddings)
    stream = random.Random(0)
    sums = [f"{stream.randrange(10, 100)}+{stream.randrange(10, 100)}=?" for _ in range(512)]
    lines = [json.dumps({"prompt": prompt, "answer": ""}) for prompt in dict.fromkeys(sums)]
    (folder / "tasks.jsonl").write_text("\n".join(lines) + "\n")


def reward(completion: str) -> float:
    """Cheap and without a pattern: whether the completion has an odd number of small letters."""
    return float(sum(map(str.islower, completion)) % 2)


@dataclass(frozen=True)
class OddLetters(Reward):
    """`reward` as strop asks for it."""

    weight: float = 1.0
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [reward(rollout.completion) for rollout in group.rollouts]


def _random_model() -> Any:
    """A Llama of 4.44M parameters with random weights: nearly uniform over its 107 tokens, so few completions end
    early.
    """
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(TOKEN_IDS),
            hidden_size=256,
            intermediate_size=696,
            num_hidden_layers=6,
            num_attention_heads=8,
            num_key_value_heads=4,
            max_position_embeddings=512,
            bos_token_id=None,
            eos_token_id=TOKEN_IDS[END],
            pad_token_id=TOKEN_IDS[PAD],
            tie_word_embeddings=False,
        )
    )


@torch.no_grad()
def _give_heavy_tail(model: Any) -> None:
    """Make completions outlive n tokens with probability 8 / n (Pareto, exponent 1): median 16, cut at 256.

    The law is in the weights, so it is the same for whoever samples. The layers compute as ever and add nothing; an
    embedding is one coordinate, and the output layer holds the logarithms of a Markov chain over tokens.
    """
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    width = model.config.hidden_size
    model.model.embed_tokens.weight.copy_(torch.eye(len(TOKEN_IDS), width))
    # the norm before the output layer makes the one coordinate sqrt(width)
    model.lm_head.weight.zero_()
    model.lm_head.weight[:, : len(TOKEN_IDS)] = _chain().clamp_min(1e-30).log().clamp_min(_IMPOSSIBLE).T / width**0.5


def _chain() -> torch.Tensor:
    """Probabilities [from, to]: characters are a clock that moves on, or stays, or ends the completion."""
    probabilities = torch.zeros(len(TOKEN_IDS), len(TOKEN_IDS))
    probabilities[:, TOKEN_IDS[END]] = 1.0
    clock = [TOKEN_IDS[character] for character in CHARACTERS]
    probabilities[TOKEN_IDS[ROLES["assistant"]]] = torch.eye(len(TOKEN_IDS))[clock[0]]
    places = _places(len(clock))
    for tick, token in enumerate(clock):
        ends = 1 / (places[tick] + 1) if places[tick] >= _SHORTEST else 0.0  # hazard of 8 / n
        stays = 1 - 1 / (places[tick + 1] - places[tick]) if tick + 1 < len(clock) else 1.0
        following = clock[min(tick + 1, len(clock) - 1)]
        probabilities[token] = 0.0
        probabilities[token, TOKEN_IDS[END]] = ends
        probabilities[token, token] += (1 - ends) * stays
        probabilities[token, following] += (1 - ends) * (1 - stays)
    return probabilities


def _places(count: int) -> list[float]:
    """How many tokens a completion has at each tick: one by one up to 32, then so that the last tick is at the cut."""
    single, cut = 4 * _SHORTEST, 32 * _SHORTEST
    ratio = (cut / single) ** (1 / (count - single))
    return [float(tick + 1) if tick < single else single * ratio ** (tick + 1 - single) for tick in range(count)]
