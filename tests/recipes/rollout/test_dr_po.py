"""DR-PO: where rollouts are reset to, and that without resets they are plain rollouts."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.strategies.independent import Independent
from strop.recipes import build, recipe_named
from strop.recipes.rollout.dr_po import ResetToDemonstration
from strop.roles import Strategy
from strop.training.objective import Objective
from strop.types import Group, Message, Origin, Rollout
from tests.building import make_batch, say
from tests.generate.strategies.flowing import Counting, Hearing, flown
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions
from tests.tiny_models import save_pocket_like


class Shown(Completions):
    """An environment of one completion, `wxyz` or nothing: five tokens with its end, or one."""

    text = "wxyz"

    def demonstrate(self) -> Message:
        return Message("assistant", self.text)


class Silent(Shown):
    text = ""


def played(
    folder: Path, strategy: Strategy, count: int, seed: int = 0, env: Completions | None = None
) -> list[Rollout]:
    async def score(group: Group) -> None:
        return None

    policy = policy_of(save_folder(folder), Recording(["1|"] * count))
    play = GroupPlayer(Group(0, TASK, []), policy, (env or Shown(1),), Chat(), seed, score)
    return asyncio.run(strategy(play.group, [play.another() for _ in range(count)], play))


def test_cuts_are_uniform_within_the_demonstration(tmp_path: Path) -> None:
    """Five tokens: after 1, 2, 3 or 4 of them, never after none and never after all; 400 rollouts."""
    found = played(tmp_path, ResetToDemonstration(Demonstrate()), 400)
    assert {each.origin for each in found} == {Origin.BRANCHED} and {each.parent for each in found} == {"0/400"}
    counts = Counter(each.turns[0].num_prefix for each in found)
    assert set(counts) == {1, 2, 3, 4} and all(70 <= count <= 130 for count in counts.values())
    for each in found:
        assert each.completion == "wxyz"[: each.turns[0].num_prefix] + "1" and each.turns[0].tokens.tolist() == ids(
            "1|"
        )


def test_some_are_reset_and_the_others_plain(tmp_path: Path) -> None:
    found = played(tmp_path, ResetToDemonstration(Demonstrate(), 0.25), 400)
    count = sum(each.origin is Origin.BRANCHED for each in found)
    assert 70 <= count <= 130 and all(
        (each.turns[0].num_prefix > 0) == (each.origin is Origin.BRANCHED) for each in found
    )


def test_nothing_to_reset_to(tmp_path: Path) -> None:
    for env in (Silent(1), Shown(1, is_broken=True)):
        found = played(tmp_path, ResetToDemonstration(Demonstrate()), 3, env=env)
        assert {each.origin for each in found} == {Origin.POLICY} and all(
            each.turns[0].num_prefix == 0 for each in found
        )
    with pytest.raises(ConfigurationError, match=r"Completions has no demonstrate\(\)"):
        played(tmp_path, ResetToDemonstration(Demonstrate()), 3, env=Completions(1))
    with pytest.raises(ConfigurationError, match=r"0 <= share <= 1, got 1\.5"):
        ResetToDemonstration(Demonstrate(), 1.5)
    with pytest.raises(ConfigurationError, match=r"got -0\.1"):
        ResetToDemonstration(Demonstrate(), -0.1)


def test_without_resets_it_is_plain_sampling(tmp_path: Path) -> None:
    """Then the environment needs no demonstrations."""
    engine = Counting(lambda prompt, key: "1" * (key % 4) + "7")
    model = save_pocket_like(tmp_path / "model")
    envs = (Hearing(Arithmetic(2)),)
    none = flown(model, tmp_path / "none.db", ResetToDemonstration(Demonstrate(), 0.0), replace(engine), envs=envs)
    plain = flown(model, tmp_path / "plain.db", Independent(), replace(engine), envs=envs)
    assert list(none.rollouts) == list(plain.rollouts) and none.row == plain.row
    engine = Counting(lambda prompt, key: "</think>7")
    reset = flown(model, tmp_path / "reset.db", ResetToDemonstration(Demonstrate(least=1.0)), engine)
    for group in reset.groups:
        shown = reset.rollouts[f"{group.number}/3"]
        for each in group.rollouts:
            at = each.turns[0].num_prefix
            assert 0 < at < shown.num_tokens and each.turns[0].prefix.tolist() == shown.turns[0].tokens[:at].tolist()
    assert sorted(reset.heard) == sorted(each.completion for each in reset.rollouts.values())
    assert reset.row["share/branched"] == 1.0


def test_prefix_tokens_are_no_actions() -> None:
    """Loss and gradient do not depend on the probability of a forced token: it is part of the prompt."""
    run = build(recipe_named("dr_po"), {})
    losses = []
    for forced in (-0.1, -5.0):
        batch = make_batch([[-1.0, -2.0]], [1.0], reference=[[-1.0, -2.0]])
        output = say([[-0.9, -2.1]])
        with torch.no_grad():
            output.logprobs[0] = forced  # the only token that is read
        loss = Objective(run.losses, run.correction)(output, batch)[0]
        loss.backward()
        assert output.logprobs.grad is not None and output.logprobs.grad[0] == 0
        losses.append((loss.item(), output.logprobs.grad.tolist()))
    assert losses[0] == losses[1] and np.isfinite(losses[0][0])
