"""Decoding under a value: strop.generate.guidance and strop.generate.engines.guided (Q# and VAS)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError
from strop.generate.engines.guided import Guided
from strop.generate.engines.torch import TorchEngine
from strop.generate.guidance import bernoulli_offset, categorical_offset, guided, linear_offset
from strop.train.values.critic import Critic
from strop.train.values.success import Success
from strop.types import Sampling
from tests.models import save_pocket_like

BASE = torch.tensor([0.5, 0.5], dtype=torch.float64).log()
BOTH = torch.tensor([0, 1])


def test_q_sharp_is_the_optimum_under_a_kl_penalty_and_vas_is_not() -> None:
    """p = (.5, .25), strength 2: pi* is proportional to 1 - p + p e^2."""
    success = torch.tensor([0.5, 0.25], dtype=torch.float64)
    found = guided(BASE, BOTH, bernoulli_offset(success.logit(), 2.0), is_centred=False).softmax(0)
    assert found.tolist() == pytest.approx([0.617588, 0.382412], abs=1e-6)
    best = (1 - success + success * float(np.exp(2.0))) * 0.5
    torch.testing.assert_close(found, best / best.sum())
    linear = guided(BASE, BOTH, linear_offset(success, 2.0), is_centred=True).softmax(0)
    assert linear.tolist() == pytest.approx([0.622459, 0.377541], abs=1e-6)


def test_no_strength_or_no_difference_leaves_the_base() -> None:
    values = torch.tensor([0.9, 0.1], dtype=torch.float64)
    for offsets, is_centred in (
        (bernoulli_offset(values.logit(), 0.0), False),
        (linear_offset(values, 0.0), True),
        (linear_offset(torch.full((2,), 0.7, dtype=torch.float64), 3.0), True),
    ):
        torch.testing.assert_close(guided(BASE, BOTH, offsets, is_centred).softmax(0), BASE.softmax(0))


def test_two_atoms_are_the_bernoulli_case() -> None:
    logit = torch.tensor([0.3, -1.2], dtype=torch.float64)
    two = torch.stack([torch.sigmoid(-logit), torch.sigmoid(logit)], 1).log()
    atoms = torch.tensor([0.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(categorical_offset(two, atoms, 2.5), bernoulli_offset(logit, 2.5))


def test_other_tokens_are_never_raised_against_the_candidates() -> None:
    base = torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64)
    top = torch.tensor([0, 1])
    q_sharp = guided(base, top, bernoulli_offset(torch.tensor([-2.0, 1.0], dtype=torch.float64), 5.0), is_centred=False)
    assert float(q_sharp[2]) == 0.0 and float((q_sharp - base).min()) == 0.0
    vas = guided(base, top, linear_offset(torch.tensor([0.0, 1.0], dtype=torch.float64), 2.0), is_centred=True)
    assert (vas - base).tolist() == [-1.0, 1.0, 0.0]


@pytest.mark.parametrize(("rule", "values"), [("q_sharp", Success()), ("vas", Critic())])
def test_an_untrained_value_samples_as_the_plain_engine_does(
    rule: str, values: Success | Critic, tmp_path: Path
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


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no rule 'q-sharp'"):
        Guided("", "q-sharp")
