"""Whatever comes, every loss of the room is finite with a finite gradient, or refuses clearly; found by walking it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

import strop.training.losses
from strop.errors import ConfigurationError
from strop.recipes.distill.ift import Intuitive
from strop.recipes.distill.kdrl import Kdrl
from strop.recipes.objective.calibrl import Calibrated
from strop.recipes.objective.dno import Dno
from strop.recipes.objective.h_dpo import HDpo
from strop.recipes.objective.nft import Nft
from strop.recipes.objective.otr import OneToken
from strop.recipes.objective.rl4lms import NucleusClip
from strop.recipes.system.areal import Decoupled
from strop.training.batch import Batch, Frozen
from strop.training.losses.clip import Clip
from strop.training.losses.exact_kl import ExactKl
from strop.training.losses.preference_pairs import Ipo
from strop.training.objective import Objective
from strop.training.split_batch import split
from strop.types import Origin
from tests.building import Said, make_batch
from tests.rooms import modules_of

REQUIRED: dict[str, Any] = {"inner": Clip(), "origins": (Origin.POLICY,)}
WORDS = 5  # of the vocabulary
WIDTH = 3  # of a hidden state
VARIANTS = [
    Nft(task_weight="root", positive_floor=0.5),
    Kdrl("teacher", "k3", mask="group"),
    Kdrl("teacher", mask="response"),
    HDpo(0.5, 1.0),
    Ipo(is_averaged=True),
    Dno(margin=0.5, against="proximal"),
    Dno(is_rated=True, against="reference"),
    ExactKl("forward", "proximal"),
    OneToken(samples=3, miss=-0.5),
    Intuitive(decay=1.0, is_detached=True),
    NucleusClip(top_p=1.0),
    Calibrated(slope=1.0),
]


def walked() -> Iterator[Any]:
    """Every dataclass of the room and below that is a loss, with its defaults; a folder it requires is `teacher`."""
    for found in modules_of(strop.training.losses):
        for kind in vars(found).values():
            is_loss = dataclasses.is_dataclass(kind) and hasattr(kind, "scope") and kind.__module__ == found.__name__
            if isinstance(kind, type) and is_loss:
                every = dataclasses.fields(kind)
                required = [
                    each.name for each in every if each.name in REQUIRED or each.default is each.default_factory
                ]
                yield kind(**{name: REQUIRED.get(name, "teacher") for name in required})


LOSSES = [*walked(), *VARIANTS]


def test_the_walk_finds_the_room() -> None:
    names = {type(loss).__name__ for loss in walked()}
    assert {"Clip", "Dpo", "Nft", "Kdrl", "Rover", "Echo", "FeatureDpo"} <= names and len(names) > 35


Rollout = list[tuple[float, float, float]]  # of each written token: own score, their logprobs twice

ours = st.one_of(st.floats(-3.0, 3.0), st.sampled_from([-1e4, 1e4, 0.0]))
theirs = st.one_of(st.floats(-30.0, 0.0), st.sampled_from([-math.inf, -1e4, 0.0]))
rollout = st.lists(st.tuples(ours, theirs, theirs), min_size=0, max_size=3)
rewards = st.one_of(st.floats(-9.0, 9.0), st.sampled_from([0.0, 1.0]))


def scene(
    rollouts: Sequence[Rollout], groups: Sequence[int], paid: Sequence[float], taught: int | None
) -> tuple[Batch, Said]:
    """A batch with all that a trainer could fill in, and a policy that says something about it."""
    random = torch.Generator().manual_seed(len(rollouts))
    behavior, other = ([[token[i] for token in each] for each in rollouts] for i in (1, 2))
    batch = make_batch(behavior, [1e6 * value for value in paid], groups, paid, reference=other)
    size = len(batch.tokens)
    batch.tokens = torch.randint(0, WORDS, (size,), generator=random)
    batch.logprobs |= dict.fromkeys(("proximal", "old", "averaged"), batch.logprobs["reference"])
    batch.fill("teacher", batch.logprobs["reference"])
    batch.score_norms = 1.0 + batch.rewards.square()
    batch.values = torch.randn(size, dtype=torch.float64, generator=random)
    batch.version = 3
    batch.aux = {"probes": torch.full((size,), 0.25), "teacher": batch.rollouts % 2}  # a share of a batch; a role
    last = [place == len(each) > 0 for each in rollouts for place in range(len(each) + 1)]
    batch.aux["verdicts"] = torch.tensor([[1.0, 2.0] if is_last else [0.0, 0.0] for is_last in last])  # of a judge
    batch.aux["strength"] = batch.aux["verdicts"] * torch.tensor([0.5, 0.0])  # of a preference, whose label is right
    batch.observed = ~batch.trainable & (batch.positions > 0)
    batch.observed_share = batch.observed.double()
    if taught is not None:
        batch.versions = torch.where(batch.rollouts == taught, -1, batch.versions)
    scores = torch.randn(size, WORDS, dtype=torch.float64, generator=random)
    written = torch.tensor([token[0] for each in rollouts for token in ((0.0,), *each)], dtype=torch.float64)
    logits = (scores + torch.nn.functional.one_hot(batch.tokens, WORDS) * written.unsqueeze(1)).requires_grad_()
    frozen = torch.randn(size, WORDS, dtype=torch.float64, generator=random) * 30
    states = torch.randn(size, WIDTH, dtype=torch.float64, generator=random, requires_grad=True)
    batch.frozen = {
        name: Frozen(states.detach()[batch.trainable], lambda hidden: hidden) for name in ("reference", "proximal")
    }
    logprobs, entropy = _said(logits, batch)
    others = {"reference": frozen, "proximal": frozen}
    return batch, Said(logprobs, entropy, logits, batch.tokens, others, states)


def _said(logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    scores = logits.log_softmax(-1)
    logprobs = scores.gather(1, batch.tokens.unsqueeze(1)).squeeze(1)
    entropy = -(scores.exp() * scores).sum(-1)
    return logprobs * batch.trainable, entropy * batch.trainable


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@settings(max_examples=25, deadline=None)
@given(
    first=st.tuples(rollout, rollout),
    second=st.tuples(rollout, rollout),
    paid=st.tuples(rewards, rewards, rewards, rewards),
    shape=st.sampled_from(["pairs", "one rollout", "one group", "taught"]),
)
@example(([], []), ([], []), (0.0, 0.0, 0.0, 0.0), "pairs")  # nothing was written
@example(([(0.0, -1.0, -1.0)],) * 2, ([(0.0, -1.0, -1.0)],) * 2, (1.0, 1.0, 1.0, 1.0), "pairs")  # all are right
@example(([(0.0, -1.0, -1.0)],) * 2, ([(0.0, -1.0, -1.0)],) * 2, (0.0, 0.0, 0.0, 0.0), "taught")  # all are wrong
@example(([(1e4, -1e4, -1e4)],) * 2, ([(-1e4, 0.0, 0.0)],) * 2, (1.0, 0.0, 0.0, 1.0), "pairs")  # huge ratios
@example(([(0.0, -math.inf, -math.inf)],) * 2, ([(0.0, -math.inf, 0.0)],) * 2, (1.0, 0.0, 1.0, 0.0), "one group")
@example(([(0.0, -1.0, -1.0)], []), ([], []), (1.0, 0.0, 0.0, 0.0), "one rollout")
def test_finite_or_refused(
    loss: Any,
    first: tuple[Rollout, Rollout],
    second: tuple[Rollout, Rollout],
    paid: tuple[float, ...],
    shape: str,
) -> None:
    rollouts = [*first, *second][: 1 if shape == "one rollout" else 4]
    groups = [0, 0, 1, 1] if shape == "pairs" else [0, 0, 0, 0]
    count = len(rollouts)
    batch, output = scene(rollouts, groups[:count], paid[:count], 3 if shape == "taught" else None)
    try:
        value, metrics = loss(output, batch)
    except ConfigurationError as refusal:
        assert any(character.isdigit() for character in str(refusal))  # a refusal says the numbers
        return
    covered = batch.observed if getattr(loss, "covers", "") == "observed" else batch.trainable
    assert covered is not None
    assert torch.isfinite(value).all() and not value[~covered].any()
    assert all(math.isfinite(metric) for metric in metrics.values()), metrics
    if value.requires_grad:
        (batch.share * value).sum().backward()
        for leaf in (output.logits, output.states):
            assert leaf is not None and (leaf.grad is None or torch.isfinite(leaf.grad).all())


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_splitting_a_step_by_groups_changes_nothing(loss: Any) -> None:
    tokens: list[Rollout] = [
        [(0.5, -0.9, -0.7), (-1.0, -1.1, -1.0)],
        [(1.0, -1.0, -1.5)],
        [(-0.1, -0.4, -0.1), (2.0, -0.1, -0.6), (0.3, -0.3, -0.3)],
        [(0.2, -1.5, -1.0)],
    ]
    batch, output = scene(tokens, [0, 0, 1, 1], (1.0, 0.0, 0.0, 1.0), taught=3)
    batch.advantages = batch.advantages / 1e6
    assert batch.observed is not None and output.logits is not None
    whole, metrics = loss(output, batch)
    total = (batch.share * whole).sum()
    expected = torch.autograd.grad(total, output.logits, retain_graph=True) if total.requires_grad else ()
    sums: dict[str, float] = dict.fromkeys(metrics, 0.0)
    value, gradient = torch.zeros_like(total), torch.zeros_like(output.logits)
    for part in split(batch, 2, "group"):
        rows = slice(part.low, part.high)
        inside = batch.trainable.nonzero().squeeze(1)
        inside = (inside >= part.low) & (inside < part.high)
        part.batch.frozen = {k: Frozen(v.hidden[inside], v.head) for k, v in batch.frozen.items()}
        said = Said(
            output.logprobs[rows],
            output.entropy[rows],
            output.logits[rows],
            part.batch.tokens,
            {name: each[rows] for name, each in output.others.items()},
            output.states[rows],
        )
        loss_here, metrics_here = loss(said, part.batch)
        summed = (part.batch.share * loss_here).sum()
        value = value + summed.detach()
        if summed.requires_grad:
            gradient = gradient + torch.autograd.grad(summed, output.logits, retain_graph=True)[0]
        sums = {name: sums[name] + metrics_here[name] for name in sums}
    torch.testing.assert_close(value, total.detach())
    for each in expected:
        torch.testing.assert_close(gradient, each)
    assert sums == pytest.approx(metrics)


TOLD_APART = ("Calibrated", "Dno", "RlPlus")  # they look at demonstrations in a way of their own
RATIOS = [x for x in LOSSES if (x.contains_ratio or x.anchor != "current") and type(x).__name__ not in TOLD_APART]


@pytest.mark.parametrize("loss", [*RATIOS, Clip(anchor="old"), Decoupled(anchor="interpolated")], ids=repr)
def test_what_nobody_sampled_is_never_taken_for_sampled_with_certainty(loss: Any) -> None:
    """A teacher's tokens (version -1) hold no log-probability: they count as if the policy had just sampled them."""
    tokens: list[Rollout] = [[(0.5, -0.9, -0.7), (-1.0, -1.1, -1.0)], [(1.0, -1.0, -1.5)], [(-0.1, 0.0, -0.1)] * 2]
    found = []
    for taught in (2, None):
        batch, output = scene(tokens, [0, 0, 0], (1.0, 0.0, 0.0), taught)
        batch.advantages = batch.advantages / 1e6 - 0.5
        own = output.logprobs.detach()
        if taught is None:
            batch.behavior_logprobs = torch.where(batch.rollouts == 2, own, batch.behavior_logprobs)
        frozen = torch.where(batch.rollouts == 2, own, batch.behavior_logprobs)  # as at a step's beginning
        batch.logprobs |= dict.fromkeys(("proximal", "old", "averaged"), frozen)
        value, _ = Objective((loss,))(output, batch)
        assert output.logits is not None
        found.append((value.detach(), *torch.autograd.grad(value, output.logits)))
    torch.testing.assert_close(found[0], found[1])
