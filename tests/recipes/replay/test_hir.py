"""Pairs behind both instructions: what the engine reads, what is trained, and that each pair is compared alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from strop.control.budgets.fixed import Fixed
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes import build, recipe_named
from strop.recipes.replay.hir import Instructed, Relabelled
from strop.training.comparison_groups import comparison_groups
from strop.types import Origin
from tests.generate.strategies.watched import watched


def completion(prompt: str, key: int) -> str:
    return "1" * (1 + key % 3)


def test_each_rollout_stands_behind_both(tmp_path: Path) -> None:
    strategy = Relabelled(Instructed("careful"), "quick")
    found = watched(tmp_path, completion, Arithmetic(2), 1, strategy=strategy, budget=Fixed(2))
    pairs = comparison_groups(found.drawn)
    assert len(pairs) == 4 * 2, "each rollout is a comparison group"
    for pair in pairs:
        own, other = pair.rollouts
        question = own.task.messages[0].content
        assert (own.origin, other.origin, other.parent) == (Origin.POLICY, Origin.REPLAYED, own.id)
        assert f"careful: {question}" in found.engine.prompt_of(own)
        assert f"quick: {question}" in found.engine.prompt_of(other)
        assert own.turns[0].tokens.tolist() == other.turns[0].tokens.tolist() and other.num_sampled == 0
    assert all("careful" in prompt and "quick" not in prompt for prompt in found.engine.prompts.values())
    assert found.is_counted_once()


def test_held_out_tasks_are_asked_to_be_right() -> None:
    run = build(recipe_named("hir"), {"right": "sure"})
    assert run.evaluation.strategy == Instructed("sure")
    for make in (lambda: Instructed(""), lambda: Relabelled(Instructed("careful"), "")):
        with pytest.raises(ConfigurationError, match="empty one"):
            make()
