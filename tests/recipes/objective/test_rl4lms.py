from __future__ import annotations

from math import log
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError
from strop.generate.engines.sampling import distribution
from strop.recipes.objective.rl4lms import NucleusClip, nucleus
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.types import Sampling
from tests.building import Said, make_batch, written

PI = torch.tensor([[0.6, 0.3, 0.1]], dtype=torch.float64).log()


def scene(
    token: int, behavior: float, advantage: float = 1.0, policy: torch.Tensor = PI
) -> tuple[Batch, Said, torch.Tensor]:
    batch = make_batch([[behavior]], [advantage])
    batch.tokens = torch.tensor([0, token])
    logits = policy.repeat(2, 1).requires_grad_()
    logprobs = logits.log_softmax(-1)[:, token] * batch.trainable
    return (
        batch,
        Said(logprobs, torch.zeros_like(logprobs), logits, batch.tokens, {"proximal": PI.repeat(2, 1)}),
        logits,
    )


def test_the_masked_policy_by_hand() -> None:
    # top_p .85 keeps two tokens: pi^ = (2/3, 1/3), d log pi^(1) / d logits = (1/3, -1/3, 0); on-policy the ratio is 1.
    assert nucleus(PI, 0.85).tolist() == [[True, True, False]]
    assert nucleus(PI, 0.55).tolist() == [[True, False, False]]
    batch, output, logits = scene(0, log(2 / 3))
    value, metrics = NucleusClip(0.85)(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([-1.0]) and metrics["masked_kl"] == pytest.approx(0.0, abs=1e-12)
    assert logits.grad is not None and logits.grad[1].tolist() == pytest.approx([-1 / 3, 1 / 3, 0.0])


def test_the_mask_is_the_old_policys_and_not_the_new_ones() -> None:
    # The new policy (.5, .1, .4) would keep tokens 0 and 2; the old one keeps 0 and 1: pi^ = (5/6, 1/6, 0). Token 1 had
    # 1/3: r = 1/2, and d r / d logits = r * (-5/6, 5/6, 0).
    new = torch.tensor([[0.5, 0.1, 0.4]], dtype=torch.float64).log()
    assert nucleus(new, 0.85).tolist() == [[True, False, True]]
    batch, output, logits = scene(1, log(1 / 3), policy=new)
    value, metrics = NucleusClip(0.85)(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([-0.5])
    assert metrics == pytest.approx({"clipped_share": 0.0, "masked_kl": log(2) - 0.5})
    assert logits.grad is not None and logits.grad[1].tolist() == pytest.approx([5 / 12, -5 / 12, 0.0])


def test_the_whole_nucleus_is_ppo() -> None:
    batch, output, logits = scene(1, log(0.28), -2.0)
    (ours,) = torch.autograd.grad(NucleusClip(1.0)(output, batch)[0].sum(), logits, retain_graph=True)
    (theirs,) = torch.autograd.grad(Clip()(output, batch)[0].sum(), logits)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("top_p", [0.3, 0.6, 0.85, 0.95])
def test_the_mask_is_the_engines(top_p: float) -> None:
    scores = torch.randn(50, 20, generator=torch.Generator().manual_seed(1)) * 2
    ones = np.ones(50, dtype=np.float32)
    sampled = distribution(scores, ones, np.zeros(50, dtype=np.int64), ones * np.float32(top_p))
    assert torch.equal(nucleus(scores, top_p), sampled.isfinite())


def test_misuse_is_refused() -> None:
    run = SimpleNamespace(admission=SimpleNamespace(lag=2), sampling=Sampling(top_p=0.5))
    found = NucleusClip().problems(run)  # type: ignore[arg-type]
    assert "set lag=0, got 2" in found[0] and "top_p=0.9 top_k=0, got 0.5 and 0" in found[1]
    run = SimpleNamespace(admission=SimpleNamespace(lag=0), sampling=Sampling(top_p=0.5))
    assert not NucleusClip(0.5).problems(run)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="0 < top_p <= 1, got 0"):
        NucleusClip(0.0)
