"""Fights against rivals: who wins, which are kept, and what ratings they give."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from strop.control.budgets.fixed import Fixed
from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.llm_agent import LLMAgent
from strop.pipeline import train
from strop.recipes.reward.arena_learning import Arena, Fights, LostFights, probability, ratings
from strop.types import Group, Origin
from tests.clock import run_virtually
from tests.filter.judges.test_criteria import Tells, longer, says, scores
from tests.generate.asking import Counsel
from tests.recipes.reward.test_rlcf import saying
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like


def test_ratings_by_hand() -> None:
    """3 wins of 4 and a tie: 3.5 of 5, odds of 7 to 3, 400 log10(7 / 3) = 147.19."""
    one, other = ratings(np.array([[0.0, 1.0], [3.0, 0.0]]))
    assert one == 1000 and other == pytest.approx(1147.1907, abs=1e-3) and probability(other, one) == pytest.approx(0.7)
    assert ratings(np.array([[0.0, 0.0], [5.0, 0.0]]))[1] == pytest.approx(1000 + 400 * np.log10(11)), "no loss: finite"
    assert ratings(np.zeros((2, 2))) == [1000, 1000] and ratings(np.array([[0, 2.0], [2, 0]]), 1, 5) == [5, 5]


def test_at_the_maximum_everybody_won_as_often_as_expected() -> None:
    wins = np.array([[0, 4, 1.5], [2, 0, 3], [0.5, 6, 0]])
    found = ratings(wins)
    for i in range(3):
        won = sum(wins[i, j] + 0.5 for j in range(3) if j != i)
        due = sum((wins[i, j] + wins[j, i] + 1) * probability(found[i], found[j]) for j in range(3) if j != i)
        assert won == pytest.approx(due, abs=1e-6)
    moved = [each + 77 for each in found]
    assert probability(moved[0], moved[2]) == pytest.approx(probability(found[0], found[2])), (
        "a constant changes no probability"
    )


def fights(*pairs: tuple[str, str]) -> Group:
    """Own completion and rival's completion of each fight."""
    group = saying(*(own for own, _ in pairs), *(rival for _, rival in pairs))
    for place, rollout in enumerate(group.rollouts):
        rollout.comparison_group = f"fight-{place % len(pairs)}"
        rollout.origin = Origin.POLICY if place < len(pairs) else Origin.TEACHER
    return group


def test_who_wins_and_what_is_kept() -> None:
    group = fights(("a", "bb"), ("ccc", "d"), ("e", "f"), ("g", "g"))
    assert scores(Fights(Tells(longer)), group) == [0, 1, 0.5, 0.5, 1, 0, 0.5, 0.5]
    both, winner = LostFights()(group), LostFights(winner_only=True)(group)
    assert both.group and winner.group and "lost 1 of 4" in both.reason
    assert [each.completion for each in both.group.rollouts] == ["bb", "a"]
    assert [each.completion for each in winner.group.rollouts] == ["bb"]
    won = fights(("aa", "b"), ("c", "d"))
    scores(Fights(Tells(longer)), won)
    assert LostFights()(won).group is None, "what was won or tied is not in the data"


def test_bias_for_a_place_is_a_tie_and_nonsense_no_fight() -> None:
    assert scores(Fights(says("core, second, 5: x")), fights(("a", "b"))) == [0.5, 0.5]
    moody = Tells(lambda parts: "nan" if "z" in parts["first"] + parts["second"] else longer(parts))
    group = fights(("a", "bb"), ("z", "y"))
    assert scores(Fights(moody), group) == [0, None, 1, None]
    group = fights(("z", "y"))
    assert scores(Fights(moody), group) == [None, None] and "no verdict of the judge's own" in group.rollouts[0].error
    alone = fights(("a", "bb"), ("c", "d"))
    alone.rollouts.pop()
    assert scores(Fights(Tells(longer)), alone) == [0, None, 1], "who has no rival has no reward"


def test_in_a_run_rivals_fight_and_only_lost_fights_are_trained(tmp_path: Path) -> None:
    arena = Arena((Demonstrate(), LLMAgent(Counsel([None]))))
    rewards, gates = (Fights(Tells(longer)),), (LostFights(),)
    run = make_run(steps=2, rewards=rewards, gates=gates, strategy=arena, budget=Fixed(4), max_failed_share=1.0)
    with opened(run, save_pocket_like(tmp_path), tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        groups = [group for step in (1, 2) for group in flow.ledger.trained_groups(step)]
    for group in groups:
        winner, loser = group.rollouts
        assert winner.origin is Origin.TEACHER and (winner.reward, loser.reward) == (1.0, 0.0)
        assert len(winner.completion) > len(loser.completion)
    row = recorder.rows[-1]
    assert row["rating"] < 1000 and row["fights_lost"] == 1.0, "a demonstration is always longer here"
    again = Arena((Demonstrate(), Demonstrate()))
    again.restore(arena.state())
    assert again.learn([]) == arena.learn([]) and Arena((Demonstrate(),)).learn([]) == {}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least 1 rival"):
        Arena(())
    with pytest.raises(ConfigurationError, match="an even number of rollouts per group, got 0"):
        asyncio.run(Arena((Demonstrate(),))(saying(), [], None))  # type: ignore[arg-type]
