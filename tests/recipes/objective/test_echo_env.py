from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.objective.echo_env import Echo
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.trainers.ranks import Ranks
from strop.training.trainers.torch import TorchTrainer
from tests.building import Said, make_batch, say
from tests.training.tiny import make_rollout, make_turn, random_groups, save_llama


def scene(reward: float = 0.0) -> tuple[Batch, Said]:
    """One rollout with 4 observation tokens, a hint and three of nll 0.5, 1 and 1.5, and one sampled token."""
    batch = make_batch([[-1.0] * 5], [1.0], rewards=[reward])
    batch.trainable = torch.tensor([False] * 5 + [True])
    batch.observed = torch.tensor([False, True, True, True, True, False])
    batch.observed_share = batch.observed / 4
    batch.aux = {"hints": torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])}
    first = torch.tensor([-9.0, -2.0, -0.5, -1.0, -1.5, -1.0], dtype=torch.float64).exp()
    logits = torch.stack([first, 1 - first], 1).log().requires_grad_()  # token 0 is the observed one
    return batch, Said(*[torch.zeros(6, dtype=torch.float64)] * 2, logits, torch.zeros(6, dtype=torch.int64))


def test_hints_have_no_loss_but_count_in_the_mean() -> None:
    batch, output = scene()
    value, metrics = Echo()(output, batch)
    assert value.tolist() == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.5, 0.0])
    assert metrics["env_nll"] == pytest.approx(0.75)  # 3 / 4, not 3 / 3
    total, _ = Objective([Echo()])(output, batch)
    assert float(total.detach()) == pytest.approx(0.0375)


def test_its_gradient_does_not_depend_on_the_reward_or_the_correction() -> None:
    def gradient(reward: float) -> Tensor:
        batch, output = scene(reward)
        batch.advantages = batch.advantages * (2 * reward - 1)
        Objective([Echo()])(output, batch)[0].backward()
        assert output.logits is not None and output.logits.grad is not None
        return output.logits.grad

    assert torch.equal(gradient(0.0), gradient(1.0)) and gradient(0.0).abs().sum() > 0


def test_only_observations_have_a_gradient_and_weight_0_is_the_policy_loss(tmp_path: Path) -> None:
    turns = [make_turn([1, 2], [3]), make_turn([4, 5, 6], [7, 8])]
    groups = random_groups(1, 1)
    groups[0].rollouts = [make_rollout("a", turns), make_rollout("b", [make_turn([1], [2])])]
    (batch,) = pack(groups, TokenMean(), 0, 1000, aux=frozenset({"hints"}))
    trainer = TorchTrainer()
    trainer.open(save_llama(tmp_path), 0)
    opened = trainer._ready()

    def gradients(*losses: object) -> list[Tensor]:
        loss, _ = opened.forward.loss(opened.model, batch, Objective(losses))  # type: ignore[arg-type]
        return list(torch.autograd.grad(loss, list(opened.model.parameters())))

    for ours, theirs in zip(gradients(Clip(), Echo(0.0)), gradients(Clip()), strict=True):
        assert torch.equal(ours, theirs)
    # alone it is the mean likelihood of the observed tokens, 1 / (2 rollouts * 3 tokens) each
    read = replace(batch, trainable=batch.observed)
    with torch.no_grad():
        nll = -opened.forward.logprobs(opened.model, read).sum() / 6
        found, metrics = opened.forward.loss(opened.model, batch, Objective([Echo(1.0)]))
    assert float(found) == pytest.approx(float(nll), rel=1e-5) == metrics["env_nll"]


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="mask of observation tokens"):
        Echo()(say([[-1.0]]), make_batch([[-1.0]]))
    with pytest.raises(ConfigurationError, match="mask of observation tokens"):
        Objective([Echo()])(say([[-1.0]]), make_batch([[-1.0]]))


def test_several_ranks_train_the_same_on_observations(tmp_path: Path) -> None:
    """The masks of observation tokens and hints are sent to the ranks."""
    hinted = make_turn([4, 5, 6], [7, 8])
    hinted.aux["hints"] = np.array([1, 0, 0, 0, 0])  # type: ignore[index]
    groups = random_groups(1, 1)
    groups[0].rollouts = [
        make_rollout("a", [make_turn([1, 2], [3]), hinted]),
        make_rollout("b", [make_turn([1], [2]), make_turn([9, 3], [5])]),
    ]
    model, objective = save_llama(tmp_path), Objective([Echo(1.0)])
    ranks = Ranks(TorchTrainer(learning_rate=1e-2), 2)
    found = []
    try:
        for trainer in (TorchTrainer(learning_rate=1e-2, fused="off"), ranks):
            trainer.open(model, 0)
            batches = pack(groups, TokenMean(), 0, 1000, aux=objective.aux)
            found.append((trainer.step(batches, objective), trainer.weights()))
    finally:
        asyncio.run(ranks.close())
    (one, weights), (two, others) = found
    assert two["env_nll"] == pytest.approx(one["env_nll"], rel=1e-5) and one["grad_norm"] > 0
    for name in weights:
        # Adam's first step is the sign of a gradient: where that is next to nothing, rounding decides
        differ = (others[name] - weights[name]).abs() > 1e-5
        assert int(differ.sum()) <= 2, f"{name}: {int(differ.sum())} of {differ.numel()} weights differ"
