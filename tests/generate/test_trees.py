"""Strategies that branch, in runs: tokens sampled once, branches that begin as their parents, the same bits again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.guess import Guess
from strop.filter.rewards.from_strategy import Noted
from strop.recipes.rollout.arpo_agentic import arpo_agentic
from strop.recipes.rollout.cosmos import cosmos
from strop.recipes.rollout.cpl import cpl
from strop.recipes.rollout.cure import cure
from strop.recipes.rollout.deepsearch import deepsearch
from strop.recipes.rollout.echo_ec.recipe import echo_ec
from strop.recipes.rollout.ettrl import ettrl
from strop.recipes.rollout.latr import latr
from strop.run import Run
from strop.types import Origin, Sampling
from tests.generate.trees import grown, small
from tests.parts import EvenSum, LongerIsBetter

PAID = {"rewards": (LongerIsBetter(),)}  # random completions earn nothing of their environments
TURNS = {"envs": (Guess(1),), "sampler": Uniform((Guess(1),))}  # where a completion is answered
PEAKED = {"sampling": Sampling(temperature=0.2, max_tokens=10)}  # so that a random model is sure of some tokens
SIZES = {"latr": 4, "echo-ec": 8, "cpl": 8, "cosmos": 4}  # rollouts of a group; two of the others
TREES: dict[str, tuple[Callable[..., Run], dict[str, Any], dict[str, Any]]] = {
    "ettrl": (ettrl, {}, PAID),
    "cure": (cure, {"first": 2, "branches": 2}, PAID),
    "deepsearch": (deepsearch, {"width": 2, "tokens": 3, "minibatches": 1}, PAID),
    "cpl": (cpl, {"tokens": 2}, {"rewards": (Noted(EvenSum()),), "steps": 1, "groups_per_step": 2}),
    "cosmos": (cosmos, {"tokens": 2, "width": 2}, {"rewards": (Noted(EvenSum()),)}),
    "latr": (latr, {"absolute": 0.0, "relative": 1.0}, PAID),
    "echo-ec": (echo_ec, {"uncertain": 0.5, "unsure": 1.0, "minibatches": 1}, PAID | PEAKED),
    "arpo-agentic": (arpo_agentic, {"probability": 1.0}, PAID | TURNS),
}


@pytest.mark.parametrize("name", TREES)
def test_every_token_is_sampled_once_and_branches_begin_as_their_parents(
    model: Path, tmp_path: Path, name: str
) -> None:
    recipe, fields, parts = TREES[name]
    run = replace(small(recipe, model, fields, group_size=SIZES.get(name, 2)), **parts)
    made, rows = grown(run, tmp_path)
    branches = [rollout for rollout in made if rollout.origin is Origin.BRANCHED]
    assert {rollout.task.source for rollout in branches} == {env.name for env in run.envs}
    assert any(turn.num_prefix for rollout in branches for turn in rollout.turns)
    assert any(row["grad_norm"] > 0 for row in rows)
    assert name in SIZES or any(len(rollout.turns) > 1 for rollout in branches), "what is nearly greedy never ends here"
