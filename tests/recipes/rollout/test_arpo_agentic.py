"""ARPO's branches: where they start, their probability, the entropy they compare with, and the unused budget."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.rollout.arpo_agentic import NORMALIZED_ENTROPY, ToolForks, _normalized_entropy
from strop.types import Origin, Outcome, Rollout
from tests.generate.talking import ids
from tests.recipes.rollout.test_ettrl import Completions, player


def made(
    folder: Path,
    completions: list[str],
    entropies: dict[str, list[float]],
    env: Completions,
    strategy: ToolForks,
    starts: int,
) -> list[Rollout]:
    play = player(folder, completions, entropies, env, NORMALIZED_ENTROPY)
    return asyncio.run(strategy(play.group, [play.another() for _ in range(starts)], play))


def test_forks_stand_before_completions_that_follow_an_answer_round_by_round(tmp_path: Path) -> None:
    """A root of three completions forks before its second; then it and the branch fork before the third.

    Warning is summed over two tokens: 0.1 + 0.2 at first, 0.4 + 0.1 in the second completion of the root, 0.6 in its
    third; 0.7 + 0.1 in the third completion of the branch, whose first entropy is the root's.
    """
    entropies = {"0/0": [0.1, 0.2, 0.9, 0.4, 0.1, 0.6, 0.0], "0/1": [0.3, 0.0, 0.7, 0.1, 0.5]}
    completions = ["ab|", "c|", "d|", *["x|", "yz|"], *["u|", "v|"]]
    found = made(
        tmp_path, completions, entropies | {"0/2": [], "0/3": []}, Completions(3), ToolForks(1, 1.0, 0.0, 2), 4
    )
    root, early, late, twig = found
    assert [each.id for each in found] == ["0/0", "0/1", "0/2", "0/3"] and root.origin is Origin.POLICY
    assert [(each.parent, each.origin) for each in found[1:]] == [
        (name, Origin.BRANCHED) for name in ("0/0", "0/0", "0/1")
    ]
    assert [turn.message.content for turn in early.turns] == ["ab", "x", "yz"]
    assert [turn.tokens.tolist() for turn in early.turns] == [[], ids("x|"), ids("yz|")]
    assert [turn.message.content for turn in late.turns] == ["ab", "c", "u"]
    assert [turn.message.content for turn in twig.turns] == ["ab", "x", "v"]
    assert [turn.tokens.tolist() for turn in twig.turns] == [[], [], ids("v|")]
    rises = [each.facts["entropy_rise"] for each in found[1:]]
    assert rises == pytest.approx([0.5 - 0.3, 0.6 - 0.3, 0.8 - 0.3])
    assert [each.facts["shared"] for each in found[1:]] == pytest.approx([3 / 8, 5 / 7, 5 / 7])


def test_the_budget_is_never_exceeded_and_its_rest_is_played_from_the_start(tmp_path: Path) -> None:
    entropies: dict[str, list[float]] = {f"0/{number}": [] for number in range(3)}
    two = made(tmp_path, ["a|"] * 6, entropies, Completions(2), ToolForks(2, 1.0), 3)
    assert [each.parent for each in two] == ["", "", "0/0"], "one fork was left"
    none = made(tmp_path, ["a|"] * 6, entropies, Completions(2), ToolForks(1, 0.0), 3)
    assert [each.origin for each in none] == [Origin.POLICY] * 3
    single = made(tmp_path, ["a|"] * 3, entropies, Completions(1), ToolForks(1, 1.0), 3)
    assert [each.origin for each in single] == [Origin.POLICY] * 3, "nothing was answered, so nothing forks"


def test_what_the_env_failed_does_not_fork(tmp_path: Path) -> None:
    found = made(tmp_path, ["a|"] * 3, {}, Completions(2, is_broken=True), ToolForks(1, 1.0), 3)
    assert [(each.outcome, each.parent) for each in found] == [(Outcome.FAILED, "")] * 3


@pytest.mark.parametrize(
    ("weight", "rise", "expected"),
    [(0.0, 3.0, 0.5), (0.0, -3.0, 0.5), (0.2, 1.0, 0.7), (0.2, -1.0, 0.3), (0.2, 2.6, 1.0), (0.2, -2.6, 0.0)],
)
def test_the_probability_of_a_fork(weight: float, rise: float, expected: float) -> None:
    random, strategy = np.random.default_rng(0), ToolForks(weight=weight)
    share = np.mean([strategy._forks(rise, random) for _ in range(4000)])
    assert share == pytest.approx(expected, abs=0.0 if expected in (0.0, 1.0) else 0.03)


def test_the_statistic_is_entropy_as_a_share_of_the_largest() -> None:
    """Halves: (1/2 + 2/4 + 6/8) bits of 2."""
    scores = torch.tensor([[0.5, 0.25, 0.125, 0.125], [0.25] * 4]).log()
    assert _normalized_entropy(scores, torch.zeros(2)).tolist() == pytest.approx([0.875, 1.0])


def test_refuses_nonsense() -> None:
    for wrong in ((0, 0.5, 0.2, 20), (1, 1.5, 0.2, 20), (1, -0.1, 0.2, 20), (1, 0.5, -0.2, 20), (1, 0.5, 0.2, 0)):
        with pytest.raises(ConfigurationError, match="ToolForks needs"):
            ToolForks(*wrong)
