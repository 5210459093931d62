"""GRPO in one file has strop's gradient: the same rollouts through strop's advantage, packing, losses and reduction."""

from __future__ import annotations

import copy
import runpy
from types import SimpleNamespace

import numpy as np
import torch

from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Message, Outcome, Rollout, Turn
from tests.building import TASK, Said
from tests.docs.pages import DOCS

one_file = SimpleNamespace(**runpy.run_path(str(DOCS / "grpo_in_one_file.py")))


def group_of(number: int, rollouts: list[SimpleNamespace]) -> Group:
    made = [
        Rollout(
            id=f"{number}-{place}",
            task=TASK,
            turns=(
                Turn(
                    prompt=np.array(rollout.prompt),
                    tokens=np.array(rollout.completion),
                    logprobs=np.array(rollout.logprobs, dtype=np.float32),
                    versions=np.zeros(len(rollout.completion), dtype=np.int64),
                    message=Message("assistant", ""),
                ),
            ),
            outcome=Outcome.FINISHED,
            reward=rollout.reward,
        )
        for place, rollout in enumerate(rollouts)
    ]
    return Group(number, TASK, made)


def test_the_gradient_is_that_of_strop() -> None:
    torch.manual_seed(0)
    policy, reference = one_file.Policy(), one_file.Policy()
    sampler = copy.deepcopy(policy)
    for weight in sampler.parameters():  # ratios differ from 1, so that the clip acts
        weight.data += 0.1 * torch.randn_like(weight)
    prompts = [task for task in one_file.tasks(np.random.default_rng(0), 4) for _ in range(6)]
    rollouts = one_file.sample(sampler, prompts)
    for place, rollout in enumerate(rollouts):
        rollout.reward = float(np.sin(place))
    groups = [rollouts[first : first + 6] for first in range(0, len(rollouts), 6)]
    for group in groups:
        one_file.set_advantages(group)
    one_file.loss(policy, reference, rollouts).backward()
    expected = [weight.grad.clone() for weight in policy.parameters()]
    policy.zero_grad()

    packed = [group_of(number, group) for number, group in enumerate(groups)]
    GroupStandard()(packed)
    (batch,) = pack(packed, SequenceMean(), 0, 100_000)
    batch.fill("reference", placed(reference, rollouts, batch.trainable).detach())
    said = placed(policy, rollouts, batch.trainable)
    loss, metrics = Objective((Clip(0.2, 0.2), Kl("k3", 0.04)))(Said(said, torch.zeros_like(said)), batch)
    loss.backward()
    assert 0.05 < metrics["clipped_share"] < 0.95, "where nothing is clipped, nothing is compared"
    for weight, due in zip(policy.parameters(), expected, strict=True):
        torch.testing.assert_close(weight.grad, due, rtol=1e-4, atol=1e-7)


def placed(policy: torch.nn.Module, rollouts: list[SimpleNamespace], where: torch.Tensor) -> torch.Tensor:
    """The file's own logprobs at their places in a packed batch: [T]."""
    found = one_file.logprobs_of(policy, rollouts)  # [B, LONGEST]
    written = one_file.is_written(rollouts).bool()
    return torch.zeros(len(where)).masked_scatter(where, found[written])


def test_it_learns() -> None:
    means = one_file.train(steps=25)
    assert np.mean(means[-5:]) > 1.5 * np.mean(means[:5])
