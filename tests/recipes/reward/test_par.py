"""PAR: the card's numbers by hand, its bounds and invariances, and who is compared with whom."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid, Span
from strop.filter.scoring import Scorer
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.reward.par.recipe import PolicyRolloutsOnly, ReferenceRollouts
from strop.recipes.reward.par.reward import Preferred
from strop.roles import Agent, Reward
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Group, Origin, Outcome, Rollout, Start
from tests.building import TASK, make_group
from tests.tiny_models import save_pocket_like


@dataclass(frozen=True)
class Given(Reward):
    """Scores by rollout."""

    scores: tuple[float | Paid, ...]
    shift: float = 0.0

    is_inline = True

    def __call__(self, group: Group) -> list[float | Paid]:
        found = [self.scores[int(rollout.id.rpartition("-")[2])] for rollout in group.rollouts]
        return [each if isinstance(each, Paid) else each + self.shift for each in found]


def beside(count: int, references: Sequence[int], lengths: Sequence[int] | None = None) -> Group:
    group = make_group([0.0] * count, lengths)
    for place in references:
        group.rollouts[place].origin = Origin.TEACHER
    return group


def scores(reward: Reward, group: Group) -> list[float]:
    return asyncio.run(reward(group))  # type: ignore[arg-type]


def test_the_probability_of_beating_references_by_hand() -> None:
    """Scores 2, 0 against 1 and -1: (s(1) + s(3)) / 2 = (0.731059 + 0.952574) / 2, (s(-1) + s(1)) / 2 = 1 / 2."""
    group, known = beside(4, [2, 3]), (2.0, 0.0, 1.0, -1.0)
    assert scores(Preferred(Given(known)), group)[:2] == pytest.approx([0.841816, 0.5])
    assert scores(Preferred(Given(known), scale=3.0), group)[0] == pytest.approx((0.952574 + 0.999877) / 2, abs=1e-6)
    shifted = scores(Preferred(Given(known, shift=100.0)), group)
    assert shifted == pytest.approx(scores(Preferred(Given(known)), group)), "only differences count"


def test_equal_to_the_only_reference_is_a_half_and_nothing_leaves_the_bounds() -> None:
    group = beside(6, [5])
    found = scores(Preferred(Given((7.0, -1e9, 6.0, 8.0, 1e9, 7.0))), group)
    assert found[0] == 0.5 and found[1] == 0.0 and found[4] == 1.0
    assert found[1] < found[2] < found[0] < found[3] < found[4], "more score is more reward"


def test_long_rollouts_pay_before_the_bound() -> None:
    """12 tokens, 4 of them beyond 8: a score of 1 - 4 * 0.5 = -1 against 0 of the reference's 3 tokens."""
    group = beside(2, [1], lengths=[12, 3])
    found = scores(Preferred(Given((1.0, 0.0)), free=8, price=0.5), group)
    assert found == pytest.approx([1 / (1 + math.e), 0.5])
    assert scores(Preferred(Given((1.0, 0.0))), group)[0] == pytest.approx(0.731059), "300 tokens are free"


def test_places_add_up_and_a_reference_without_a_score_is_left_out() -> None:
    paid = Paid(1.0, (Span(0, 0, 1, 0.5), Span(0, 0, 1, 0.5)))
    assert scores(Preferred(Given((paid, math.nan, 2.0))), beside(3, [1, 2]))[0] == 0.5
    lonely = beside(3, [1])
    asyncio.run(Scorer([Preferred(Given((1.0, math.nan, 2.0)))])(lonely))
    assert {rollout.outcome for rollout in lonely.rollouts} == {Outcome.FAILED}, "no reference, no reward"


def test_a_failed_reference_is_no_measure() -> None:
    group = beside(4, [2, 3])
    group.rollouts[3].outcome = Outcome.FAILED
    asyncio.run(Scorer([Preferred(Given((2.0, 0.0, 2.0, -9.0)))])(group))
    assert [rollout.reward for rollout in group.scored] == pytest.approx([0.5, 1 / (1 + math.exp(2)), 0.5])


def test_only_the_policys_own_go_on() -> None:
    group = beside(4, [1, 3])
    group.rollouts[2].outcome = Outcome.FAILED
    kept = PolicyRolloutsOnly()(group).group
    assert kept is not None and [rollout.id for rollout in kept.rollouts] == ["0-0"]
    assert PolicyRolloutsOnly()(beside(2, [0, 1])).group is None


def test_the_last_starts_are_the_references() -> None:
    played: list[Start] = []

    async def play(start: Start, agent: Agent | None = None) -> Rollout:
        played.append(start)
        return Rollout(start.id, TASK, (), Outcome.FINISHED, start.origin)

    starts = [Start(str(index), index) for index in range(5)]
    made = asyncio.run(ReferenceRollouts(2)(Group(0, TASK, []), starts, play))  # type: ignore[arg-type]
    assert [rollout.origin for rollout in made] == [Origin.POLICY] * 3 + [Origin.TEACHER] * 2
    assert sorted((start.id, start.policy_name) for start in played)[2:] == [
        ("2", ""),
        ("3", "reference"),
        ("4", "reference"),
    ]
    with pytest.raises(ConfigurationError, match="5 of 5 rollouts are the reference's"):
        asyncio.run(ReferenceRollouts(5)(Group(0, TASK, []), starts, play))  # type: ignore[arg-type]


def test_numbers_that_make_no_bound_are_refused() -> None:
    for wrong in ({"scale": 0.0}, {"price": -1.0}):
        with pytest.raises(ConfigurationError, match="scale > 0 and price >= 0"):
            Preferred(Given(()), **wrong)


def test_a_run_trains_on_its_own_rollouts_alone(tmp_path: Path) -> None:
    model = str(save_pocket_like(tmp_path / "model"))
    sizes = {"groups_per_step": 4, "group_size": 2, "max_tokens": 6, "heldout_tasks": 1, "steps": 1, "model": model}
    run = build(recipe_named("par"), {**sizes, "judge": model})
    run.rewards = (*run.rewards, replace(run.rewards[0].inner, weight=0.0))  # type: ignore[attr-defined]
    launch(run, tmp_path, "run")
    ledger = Ledger(RunFolder(tmp_path / "run").ledger, read_only=True)
    for group in ledger.trained_groups(1):
        assert [rollout.origin for rollout in group.rollouts] == [Origin.POLICY] * 2
        assert all(0 < rollout.reward < 1 for rollout in group.rollouts)
        odds = [math.log(rollout.reward / (1 - rollout.reward)) for rollout in group.rollouts]
        scores = [rollout.rewards["scored"] for rollout in group.rollouts]
        assert odds[0] - odds[1] == pytest.approx(scores[0] - scores[1], abs=1e-4), "less the same reference"
    ledger.close()
