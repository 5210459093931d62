"""Decoding under a value: strop.generate.guidances and strop.generate.engines.wrappers.guided (Q# and VAS)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.guided import Guided
from strop.recipes.value.q_sharp import QSharp, Success
from strop.recipes.value.vas import Vas
from strop.roles import Guidance
from strop.training.values.critic import Critic
from strop.types import Sampling
from tests.tiny_models import save_pocket_like

BASE = torch.tensor([0.5, 0.5], dtype=torch.float64).log()
BOTH = torch.tensor([0, 1])


def test_q_sharp_is_the_optimum_under_a_kl_penalty_and_vas_is_not() -> None:
    """p = (.5, .25), strength 2: pi* is proportional to 1 - p + p e^2."""
    success = torch.tensor([0.5, 0.25], dtype=torch.float64)
    found = QSharp(2.0)(BASE, BOTH, success.logit()).softmax(0)
    assert found.tolist() == pytest.approx([0.617588, 0.382412], abs=1e-6)
    best = (1 - success + success * float(np.exp(2.0))) * 0.5
    torch.testing.assert_close(found, best / best.sum())
    linear = Vas(2.0)(BASE, BOTH, success).softmax(0)
    assert linear.tolist() == pytest.approx([0.622459, 0.377541], abs=1e-6)


def test_no_strength_or_no_difference_leaves_the_base() -> None:
    values = torch.tensor([0.9, 0.1], dtype=torch.float64)
    for found in (
        QSharp(0.0)(BASE, BOTH, values.logit()),
        Vas(0.0)(BASE, BOTH, values),
        Vas()(BASE, BOTH, torch.full((2,), 0.7, dtype=torch.float64)),
    ):
        torch.testing.assert_close(found.softmax(0), BASE.softmax(0))


def test_q_sharp_of_two_returns_is_that_of_any_number_of_them() -> None:
    """log E[exp(strength * return)] over the atoms 0 and 1, which candidates have more of than others."""
    logit, strength = torch.tensor([0.3, -1.2], dtype=torch.float64), 2.5
    probabilities, atoms = torch.stack([torch.sigmoid(-logit), torch.sigmoid(logit)], 1), torch.tensor([0.0, 1.0])
    worth = torch.logsumexp(probabilities.log() + strength * atoms, -1)  # [C]
    torch.testing.assert_close(QSharp(strength)(BASE, BOTH, logit) - BASE, worth - worth.min())


def test_other_tokens_are_never_raised_against_the_candidates() -> None:
    base = torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64)
    top = torch.tensor([0, 1])
    q_sharp = QSharp(5.0)(base, top, torch.tensor([-2.0, 1.0], dtype=torch.float64))
    assert float(q_sharp[2]) == 0.0 and float((q_sharp - base).min()) == 0.0
    vas = Vas(2.0)(base, top, torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert (vas - base).tolist() == [-1.0, 1.0, 0.0]


@pytest.mark.parametrize(("rule", "values"), [(QSharp(), Success()), (Vas(), Critic())])
def test_an_untrained_value_samples_as_the_plain_engine_does(
    rule: Guidance, values: Success | Critic, tmp_path: Path
) -> None:
    """A head of zeros says the same of every token: same tokens and logprobs for the same key."""
    model = save_pocket_like(tmp_path / "model")
    values.open(model, 0)
    values.save(tmp_path)
    plain, guided_engine = TorchEngine(), Guided(str(tmp_path), rule, candidates=5)
    plain.open(model)
    guided_engine.open(model)
    for key in range(3):
        prompt, sampling = np.array([3, 5, 7]), Sampling(max_tokens=6)
        ours = asyncio.run(guided_engine.sample(prompt, sampling, key))
        theirs = asyncio.run(plain.sample(prompt, sampling, key))
        assert ours.tokens.tolist() == theirs.tokens.tolist() and ours.stop is theirs.stop
        assert ours.logprobs.tolist() == pytest.approx(theirs.logprobs.tolist(), abs=1e-4)


@dataclass(frozen=True)
class Favourite(Guidance):
    """A rule of its own: the token whose value is highest, for certain."""

    file: ClassVar[str] = "critic_weights.safetensors"

    def __call__(self, base: torch.Tensor, candidates: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        return torch.full_like(base, -torch.inf).index_fill(0, candidates[told.argmax()], 0.0)


def test_a_new_guidance_is_a_new_class_and_nothing_else(tmp_path: Path) -> None:
    """The value is a feature of the last state: whoever asks the critic for it finds the token that is drawn."""
    model = save_pocket_like(tmp_path / "model")
    critic = Critic()
    critic.open(model, 0)
    assert critic._body is not None
    with torch.no_grad():
        critic._body.head.weight[0, 0] = 1.0
    critic.save(tmp_path)
    engine = Guided(str(tmp_path), Favourite(), candidates=5)
    engine.open(model)
    found = asyncio.run(engine.sample(np.array([3, 5, 7]), Sampling(max_tokens=1), 0))
    plain = engine._base(torch.tensor([[3, 5, 7]])).logits[0, -1].topk(5).indices
    told = [float(engine.told(torch.tensor([[3, 5, 7, int(token)]]))) for token in plain]
    assert found.tokens.tolist() == [int(plain[int(np.argmax(told))])] and len(set(told)) == 5
    assert found.logprobs.tolist() == [0.0]


def test_at_least_one_candidate() -> None:
    with pytest.raises(ConfigurationError, match="candidates >= 1, got 0"):
        Guided("", Vas(), candidates=0)
