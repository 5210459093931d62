"""CURE's branches: which tokens may be critical, which one is drawn, and one group of roots and branches."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.rollout.cure import CriticalTokens, cure
from strop.types import Origin, Outcome, Rollout
from tests.generate.talking import ids
from tests.recipes.rollout.test_ettrl import Completions, player


def made(play: GroupPlayer, roots: int, strategy: CriticalTokens) -> list[Rollout]:
    strategy.meet(play.policy)
    return asyncio.run(strategy(play.group, [play.another() for _ in range(roots)], play))


def test_the_first_token_special_ones_and_blanks_are_never_critical(tmp_path: Path) -> None:
    """Of `ab c|` the first token has most entropy, then the end, then the blank; `b` is next, and `c` last."""
    play = player(tmp_path, ["ab c|", "x|", "y|"], {"0/0": [0.9, 0.3, 0.6, 0.1, 0.8]}, Completions(1))
    root, *branches = made(play, 1, CriticalTokens(2, 1, shortest=1))
    assert [each.turns[0].prefix.tolist() for each in branches] == [ids("a")] * 2
    assert [each.turns[0].message.content for each in branches] == ["ax", "ay"], "the critical token is drawn anew"
    assert all(each.parent == root.id and each.origin is Origin.BRANCHED for each in branches)
    assert branches[0].facts == {"shared": pytest.approx(1 / 3)}
    assert len({play.keys[index] for index in range(3)}) == 3


def test_tokens_of_one_letter_are_none_in_the_paper(tmp_path: Path) -> None:
    play = player(tmp_path, ["abc|"], {"0/0": [0.9, 0.3, 0.6, 0.1]}, Completions(1))
    assert len(made(play, 1, CriticalTokens())) == 1
    assert play.policy.template.encode("ab").tolist() != ids("ab"), "a token of two letters is known"


def test_one_of_the_candidates_is_drawn_by_the_roots_own_key(tmp_path: Path) -> None:
    """Sixty roots `abcde|` with entropies that rise: of the two highest letters, d and e, each is drawn by some."""
    warnings = {f"0/{root}": [0.0, 0.1, 0.2, 0.3, 0.4, 0.0] for root in range(60)}
    found = made(player(tmp_path, ["abcde|"] * 60 + ["x|"] * 60, warnings, Completions(1)), 60, CriticalTokens(1, 2, 1))
    places = [sum(turn.num_prefix for turn in each.turns) for each in found[60:]]
    assert set(places) == {3, 4} and 15 < places.count(3) < 45
    again = made(player(tmp_path, ["abcde|"] * 60 + ["x|"] * 60, warnings, Completions(1)), 60, CriticalTokens(1, 2, 1))
    assert [sum(turn.num_prefix for turn in each.turns) for each in again[60:]] == places


def test_in_a_later_completion_and_never_where_the_env_failed(tmp_path: Path) -> None:
    completions = ["ab|", "cd|", "x|"]
    root, branch = made(
        player(tmp_path, completions, {"0/0": [0, 0, 0, 0, 0.5]}, Completions(2)), 1, CriticalTokens(1, 1, 1)
    )
    assert [turn.message.content for turn in branch.turns] == ["ab", "cx"]
    assert [turn.tokens.tolist() for turn in branch.turns] == [[], ids("x|")] and len(root.turns) == 2
    broken = made(player(tmp_path, ["ab|"] * 4, {}, Completions(1, is_broken=True)), 2, CriticalTokens())
    assert [each.outcome for each in broken] == [Outcome.FAILED] * 2


def test_the_first_stage_has_as_many_rollouts_as_the_second(tmp_path: Path) -> None:
    run = cure(first=7)
    assert run.warmup is not None and (run.warmup.steps, run.warmup.budget.size, run.budget.size) == (7, 4, 16)
    first = run.warmup.strategy
    assert isinstance(first, CriticalTokens)
    warnings = {f"0/{root}": [0.0, 0.1] for root in range(4)}
    found = made(player(tmp_path, ["abc|"] * 4 + ["x|"] * 12, warnings, Completions(1)), 4, first)
    assert len(found) == 16 and {each.comparison_group for each in found} == {""}, "one group, compared as a whole"


def test_refuses_nonsense() -> None:
    for wrong in ((0, 1, 1), (1, 0, 1), (1, 1, -1)):
        with pytest.raises(ConfigurationError, match="CriticalTokens needs"):
            CriticalTokens(*wrong)
    assert CriticalTokens(1, 1, 0).branches == 1


def test_it_must_know_what_tokens_say(tmp_path: Path) -> None:
    play = player(tmp_path, ["ab|"], {"0/0": [0.5]}, Completions(1))
    with pytest.raises(ConfigurationError, match="call meet"):
        asyncio.run(CriticalTokens()(play.group, [play.another()], play))
