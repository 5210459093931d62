"""Tiny random models on disk and random rollouts of random tasks, for tests of the trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Message, Outcome, Rollout, Sampling, Task, Turn

VOCABULARY = 23


def save_llama(folder: Path, vocabulary: int = VOCABULARY, layers: int = 2, is_tied: bool = False) -> Path:
    """Grouped keys and values, so that heads really differ from those of GPT-2."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.3,
        tie_word_embeddings=is_tied,
    )
    return _save(LlamaForCausalLM(config), folder)


def save_gpt2(folder: Path) -> Path:
    torch.manual_seed(2)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64, initializer_range=0.3, n_inner=48
    )
    return _save(GPT2LMHeadModel(config), folder)


def _save(model: LlamaForCausalLM | GPT2LMHeadModel, folder: Path) -> Path:
    model.save_pretrained(folder)
    words = Tokenizer(WordLevel({f"w{i}": i for i in range(VOCABULARY)}, unk_token="w0"))
    words.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w0").save_pretrained(folder)
    return folder


def make_turn(
    prompt: Sequence[int], tokens: Sequence[int], fresh: bool = False, temperature: float = 1.0, version: int = 0
) -> Turn:
    """Behaviour logprobs are -0.1, -0.2, ... so that each can be told apart."""
    return Turn(
        prompt=np.array(prompt, dtype=np.int64),
        tokens=np.array(tokens, dtype=np.int64),
        logprobs=-0.1 * np.arange(1, len(tokens) + 1, dtype=np.float32),
        versions=np.full(len(tokens), version, dtype=np.int64),
        message=Message("assistant", ""),
        sampling=Sampling(temperature=temperature),
        fresh=fresh,
    )


def make_rollout(id: str, turns: Sequence[Turn], task: str = "task", advantage: float | None = 1.0) -> Rollout:
    rollout = Rollout(id, Task((Message("user", task),), "", "test", id=task), tuple(turns), Outcome.FINISHED)
    if advantage is not None:
        rollout.set_advantage(advantage)
    return rollout


def random_groups(num_groups: int = 3, num_rollouts: int = 4, seed: int = 0) -> list[Group]:
    """One or two turns each, of various lengths and temperatures, with random advantage."""
    random = np.random.default_rng(seed)
    groups = []
    for number in range(num_groups):
        rollouts = []
        for index in range(num_rollouts):
            turns = [
                make_turn(
                    random.integers(0, VOCABULARY, int(random.integers(1, 6))).tolist(),
                    random.integers(0, VOCABULARY, int(random.integers(1, 9))).tolist(),
                    temperature=float(random.choice([0.7, 1.0])),
                )
                for _ in range(int(random.integers(1, 3)))
            ]
            rollouts.append(make_rollout(f"{number}/{index}", turns, f"task-{number}", float(random.normal())))
            rollouts[-1].reward = float(random.random())
        groups.append(Group(number, rollouts[0].task, rollouts))
    return groups


def opened(folder: Path, **settings: object) -> TorchTrainer:
    trainer = replace(TorchTrainer(learning_rate=1e-2, chunk=16), **settings)  # type: ignore[arg-type]
    trainer.open(folder, 0)
    return trainer
