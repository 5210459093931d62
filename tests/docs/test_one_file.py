"""GRPO in one file has strop's gradient: the same attempts through strop's credit, packing, losses and reduction."""

from __future__ import annotations

import copy
import runpy
from types import SimpleNamespace

import numpy as np
import torch

from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import Group, Message, Outcome, Trajectory, Turn
from tests.building import TASK, Said
from tests.docs.pages import DOCS

one_file = SimpleNamespace(**runpy.run_path(str(DOCS / "grpo_in_one_file.py")))


def group_of(number: int, attempts: list[SimpleNamespace]) -> Group:
    made = [
        Trajectory(
            id=f"{number}-{place}",
            task=TASK,
            turns=(
                Turn(
                    prompt=np.array(attempt.prompt),
                    tokens=np.array(attempt.reply),
                    logprobs=np.array(attempt.logprobs, dtype=np.float32),
                    versions=np.zeros(len(attempt.reply), dtype=np.int64),
                    message=Message("assistant", ""),
                ),
            ),
            outcome=Outcome.FINISHED,
            reward=attempt.reward,
        )
        for place, attempt in enumerate(attempts)
    ]
    return Group(number, TASK, made)


def test_the_gradient_is_that_of_strop() -> None:
    torch.manual_seed(0)
    policy, reference = one_file.Policy(), one_file.Policy()
    sampler = copy.deepcopy(policy)
    for weight in sampler.parameters():  # ratios differ from 1, so that the clip acts
        weight.data += 0.1 * torch.randn_like(weight)
    prompts = [task for task in one_file.tasks(np.random.default_rng(0), 4) for _ in range(6)]
    attempts = one_file.sample(sampler, prompts)
    for place, attempt in enumerate(attempts):
        attempt.reward = float(np.sin(place))
    groups = [attempts[first : first + 6] for first in range(0, len(attempts), 6)]
    for group in groups:
        one_file.give_credit(group)
    one_file.loss(policy, reference, attempts).backward()
    expected = [weight.grad.clone() for weight in policy.parameters()]
    policy.zero_grad()

    packed = [group_of(number, group) for number, group in enumerate(groups)]
    GroupStandard()(packed)
    (batch,) = pack(packed, SequenceMean(), 0, 100_000)
    batch.fill("reference", placed(reference, attempts, batch.trainable).detach())
    said = placed(policy, attempts, batch.trainable)
    loss, figures = Objective((Clip(0.2, 0.2), Kl("k3", 0.04)))(Said(said, torch.zeros_like(said)), batch)
    loss.backward()
    assert 0.05 < figures["clipped_share"] < 0.95, "where nothing is clipped, nothing is compared"
    for weight, due in zip(policy.parameters(), expected, strict=True):
        torch.testing.assert_close(weight.grad, due, rtol=1e-4, atol=1e-7)


def placed(policy: torch.nn.Module, attempts: list[SimpleNamespace], where: torch.Tensor) -> torch.Tensor:
    """The file's own logprobs at their places in a packed batch: [T]."""
    found = one_file.logprobs_of(policy, attempts)  # [B, LONGEST]
    written = one_file.is_written(attempts).bool()
    return torch.zeros(len(where)).masked_scatter(where, found[written])


def test_it_learns() -> None:
    means = one_file.train(steps=25)
    assert np.mean(means[-5:]) > 1.5 * np.mean(means[:5])
