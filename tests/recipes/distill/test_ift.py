from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.distill.ift import Intuitive
from strop.training.losses.likelihood import Likelihood
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import SequenceMean
from strop.training.trainers.torch import TorchTrainer
from tests.building import make_batch, say, written
from tests.training.tiny import random_groups, save_llama


def weighed(loss: Intuitive) -> tuple[float, list[float]]:
    """Mean loss and its gradient on u = (2, 1)."""
    batch, output = make_batch([[0.0, 0.0]]), say([[-2.0, -1.0]])
    output.logits, output.tokens = torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64)
    value, _ = loss(output, batch)
    total = (batch.share * value).sum()
    total.backward()
    return float(total.detach()), [-gradient for gradient in written(batch, output.logprobs.grad)]


def test_relation_propagation_by_hand() -> None:
    # c = (2.5, 1), w = (10/7, 4/7): L = 12/7.
    value, gradient = weighed(Intuitive(0.0, 0.5))
    assert value == pytest.approx(1.7142857) and gradient == pytest.approx([0.7959184, 0.1224490], abs=1e-6)
    value, gradient = weighed(Intuitive(0.0, 0.5, is_detached=True))
    assert value == pytest.approx(1.7142857) and gradient == pytest.approx([1.4285714 / 2, 0.5714286 / 2])


def test_without_guesses_and_propagation_it_is_imitation() -> None:
    value, gradient = weighed(Intuitive(0.0, 0.0))
    assert value == pytest.approx(1.5) and gradient == pytest.approx([0.5, 0.5])


def test_it_reads_its_own_guesses(tmp_path: Path) -> None:
    """With share 1 and no propagation: the likelihood of the true tokens after the greedy guesses."""
    trainer = TorchTrainer()
    trainer.open(save_llama(tmp_path), 0)
    opened = trainer._ready()
    (batch,) = pack(random_groups(), SequenceMean(), 0, 10_000)
    with torch.no_grad():
        found, _ = opened.forward.loss(opened.model, batch, Objective([Intuitive(1.0, 0.0)]))
        output, _ = opened.forward._output(opened.model, batch)
        guess = output.over_logits(lambda logits, tokens: logits.argmax(-1).float()).long()
        assert not torch.equal(guess[batch.trainable], batch.tokens[batch.trainable])
        guessed = replace(batch, tokens=torch.where(batch.trainable, guess, batch.tokens))
        read, _ = opened.forward._output(opened.model, guessed)
        read.batch = batch
        expected, _ = Objective([Likelihood()])(read, batch)
        plain, _ = opened.forward.loss(opened.model, batch, Objective([Likelihood()]))
    assert float(found) == pytest.approx(float(expected), rel=1e-4) != pytest.approx(float(plain), rel=1e-2)


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"got 1.5 and 0.95"):
        Intuitive(1.5)
