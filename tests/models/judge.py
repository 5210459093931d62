"""Judge of a model folder: engine and trainer beside transformers' own eager forward pass, past windows and chunks.

It shares nothing with the proof that the loader makes: whole sequences, one at a time, in transformers alone, are
compared with what the trainer makes of packed ones with shared prefixes, and with what the engine says of siblings,
late siblings, forks from the middle of a completion, and second and third turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import (
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
)

from strop.backends import Completion
from strop.errors import StropError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.models.model import load_model, logits
from strop.models.pictures import placeholders_of
from strop.training.machine.forward import Forward
from strop.training.machine.packed_sequences import Sequences
from strop.types import IntArray, Sampling
from tests.models.tower_models import mask

LIMIT = 1e-3  # nats; also of the largest number of a gradient
FIRST, LAST = 3, 100  # tokens that are used


@dataclass(frozen=True)
class Judgement:
    """What came of a folder: `runs` right, `wrong`, `refused` before it ran, or `failed` on the way."""

    verdict: str
    why: str = ""
    trainer: float = 0.0  # largest difference of a logprob, in nats
    gradient: float = 0.0  # of a derivative, over the largest one
    engine: float = 0.0

    @property
    def is_red(self) -> bool:
        return self.verdict in ("wrong", "failed")


def judged(folder: Path, truth: Path | None = None) -> Judgement:
    """Differences of engine and trainer from transformers, which reads `truth`, or the same folder.

    Whatever the loader refuses is not looked at.
    """
    try:
        model = load_model(folder)
        engine = TorchEngine(rows=6)
        engine.open(folder)
    except StropError as error:
        return Judgement("refused", " ".join(str(error).split()))
    reference = alone_in(truth or folder)
    try:
        trainer, gradient = trained(model, reference)
        sampled = asyncio.run(conversed(engine, reference))
    except Exception as error:  # whatever a family's own code does
        return Judgement("failed", f"{type(error).__name__}: {' '.join(str(error).split())}"[:300])
    is_right = max(trainer, gradient, sampled) <= LIMIT  # and nothing is NaN
    return Judgement("runs" if is_right else "wrong", "", trainer, gradient, sampled)


def alone_in(folder: Path) -> Any:
    """The model of a folder as transformers runs it: eager, in float32, with its picture tower if it has one."""
    has_tower = type(AutoConfig.from_pretrained(folder)) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    reader = AutoModelForImageTextToText if has_tower else AutoModelForCausalLM
    found = reader.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    never = torch.tensor(
        [each for each in placeholders_of(found.config) if each < found.get_output_embeddings().weight.shape[0]]
    )
    if len(never):  # a picture's placeholder is never sampled
        found.register_forward_hook(lambda _model, _given, said: mask(said, never))
    return found.eval()


def letters(length: int, seed: int) -> IntArray:
    return np.random.default_rng(seed).integers(FIRST, LAST, length)


def alone(reference: Any, tokens: IntArray) -> Tensor:
    """Logprobs of all but the first token of one sequence, by transformers: [T - 1]."""
    given = torch.from_numpy(tokens)
    scores = torch.log_softmax(reference(input_ids=given[None], use_cache=False).logits[0].float(), -1)
    return scores[:-1].gather(1, given[1:, None]).squeeze(1)


def trained(model: Any, reference: Any) -> tuple[float, float]:
    """Largest differences of logprobs and of derivatives: four packed sequences, of which three share prefixes."""
    stem = letters(50, 0)
    parts = [np.concatenate([stem[:keep], letters(rest, seed)]) for seed, (keep, rest) in enumerate(_SHAPES, 1)]
    learning = {name for name, each in model.named_parameters() if each.requires_grad}
    ours = _packed(model, parts)
    theirs = torch.cat([alone(reference, part) for part in parts])
    weights = torch.from_numpy(np.random.default_rng(9).normal(size=len(theirs))).float()
    for told in (ours, theirs):
        (told * weights).sum().backward()
    largest = max(float(each.grad.abs().max()) for each in reference.parameters() if each.grad is not None)
    given = dict(model.named_parameters())
    worst = max(
        float((_grad(given[name]) - _grad(each)).abs().max())
        for name, each in reference.named_parameters()
        if name in learning
    )
    return float((ours - theirs).detach().abs().max()), worst / largest


_SHAPES = ((50, 20), (50, 33), (24, 30), (0, 50))  # tokens of the stem, and more


def _grad(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _packed(model: Any, parts: Sequence[IntArray]) -> Tensor:
    """The same by the trainer's layout and forward pass."""
    lengths = [len(part) for part in parts]
    tokens = torch.from_numpy(np.concatenate(parts))
    layout = Sequences(tokens, torch.cat([torch.arange(n) for n in lengths]), lengths, "cpu")
    assert layout.num_computed < len(tokens) - len(parts), "prefixes were not shared"
    fast_path = Forward("cpu", "float32", 1024, "auto").fast_path(model)
    computed = layout.computed(model, fast_path)
    rows = torch.cat([torch.arange(1, n) + sum(lengths[:place]) for place, n in enumerate(lengths)])
    scores = torch.log_softmax(logits(model, computed.index_select(0, layout.before(rows))).float(), -1)
    return scores.gather(1, tokens[rows, None]).squeeze(1)


async def conversed(engine: TorchEngine, reference: Any) -> float:
    """The largest difference of a sampled token's logprob in conversations that share, fork and go on."""
    told: list[tuple[IntArray, Completion]] = []

    async def ask(prompts: Sequence[IntArray], first: int, tokens: int = 16) -> list[IntArray]:
        asked = [engine.sample(each, Sampling(max_tokens=tokens), first + i) for i, each in enumerate(prompts)]
        answers = await asyncio.gather(*asked)
        told.extend(zip(prompts, answers, strict=True))
        return [np.concatenate([prompt, each.tokens]) for prompt, each in zip(prompts, answers, strict=True)]

    stem = letters(40, 20)
    others = [np.concatenate([stem[:33], letters(9, 21)]), letters(17, 22), letters(64, 23)]
    first = await ask([stem, stem, *others, stem, others[0]], 0)
    late, forks, seconds = await asyncio.gather(
        ask([stem, stem], 100),
        ask([first[0][:51], first[0][:51], first[2][:47]], 200),
        ask([np.append(each, letters(5, 24)) for each in first], 0),
    )
    await ask([np.append(each, letters(3, 25)) for each in (*seconds[:3], *forks, *late)], 300, 9)
    with torch.no_grad():
        differences = [
            (alone(reference, np.concatenate([prompt, answer.tokens]))[len(prompt) - 1 :].numpy() - answer.logprobs)
            for prompt, answer in told
        ]
    assert engine.num_generated >= 300, engine.num_generated
    return float(np.abs(np.concatenate(differences)).max())
