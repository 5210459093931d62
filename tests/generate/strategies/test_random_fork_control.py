"""Forks anywhere: as many as where the policy is uncertain, at places by the root's own key."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.generate.strategies.random_fork_control import RandomForks
from strop.types import Origin, Outcome, Rollout
from tests.generate.talking import ids
from tests.recipes.rollout.test_ettrl import Completions, player


def made(folder: Path, completions: list[str], roots: int, strategy: RandomForks, env: Completions) -> list[Rollout]:
    play = player(folder, completions, {}, env)
    return asyncio.run(strategy(play.group, [play.another() for _ in range(roots)], play))


def test_every_place_may_be_drawn_and_none_twice(tmp_path: Path) -> None:
    roots = 40
    found = made(tmp_path, ["abc|"] * roots + ["x|"] * 80, roots, RandomForks(2, 1), Completions(1))
    places = [each.turns[0].num_prefix for each in found[roots:]]
    assert len(found) == 3 * roots and set(places) == {0, 1, 2, 3}
    assert all(first < second for first, second in zip(places[::2], places[1::2], strict=True))
    branch = found[roots]
    assert branch.turns[0].prefix.tolist() == ids("abc|")[: places[0]] and branch.parent == "0/0"
    assert branch.origin is Origin.BRANCHED and branch.facts["shared"] == places[0] / (places[0] + 2)
    again = made(tmp_path, ["abc|"] * roots + ["x|"] * 80, roots, RandomForks(2, 1), Completions(1))
    assert [each.turns[0].num_prefix for each in again[roots:]] == places


def test_never_more_places_than_tokens_and_none_of_what_failed(tmp_path: Path) -> None:
    assert len(made(tmp_path, ["|", *["x|"] * 5], 1, RandomForks(4, 2), Completions(1))) == 3
    failed = made(tmp_path, ["ab|"] * 2, 2, RandomForks(1, 1), Completions(1, is_broken=True))
    assert [each.outcome for each in failed] == [Outcome.FAILED] * 2
    for wrong in ((0, 1), (1, 0)):
        with pytest.raises(ConfigurationError, match="RandomForks needs"):
            RandomForks(*wrong)
