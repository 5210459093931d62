"""DARS's schedules by hand, what they are for, and the second wave in a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from strop.control.admission.bounded_lag import BoundedLag
from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.recipes.select.dars import Rebalanced
from strop.roles import Reward
from strop.training.advantages.group_relative import GroupMean
from strop.types import ZERO_TO_ONE, Group, Origin, ScoreRange
from tests.building import make_group
from tests.clock import run_virtually
from tests.test_pipeline import completion, make_run, opened


def rewards(right: int, count: int) -> list[float]:
    return [1.0] * right + [0.0] * (count - right)


def size_of_credit(right: int, count: int) -> float:
    """What the batch's gradient is made of: the sum of |A| over the rollouts of a group."""
    group = make_group(rewards(right, count))
    GroupMean()([group])
    return sum(abs(float(t.advantages[0])) for t in group.rollouts if t.advantages is not None)


def test_the_releases_numbers() -> None:
    """8 rollouts of which 0 to 8 were right; (4 - 8 * S) / S and (8 (1 - a) - 8 * S) / S with S = 2a(1 - a)."""
    equal, weighted = Rebalanced(8, 32), Rebalanced(8, 64, by_hardness=True)
    groups = [make_group(rewards(right, 8)) for right in range(9)]
    assert [equal.rollouts(group) for group in groups] == [24, 11, 3, 1, 0, 0, 0, 0, 0]
    assert [weighted.rollouts(group) for group in groups] == [56, 24, 8, 3, 0, 0, 0, 0, 0]
    assert equal.rollouts(make_group([])) == weighted.rollouts(make_group([])) == 8 == equal.size


@pytest.mark.parametrize("by_hardness", [False, True])
@pytest.mark.parametrize("size", [4, 5, 8, 12])
def test_the_advantage_of_a_hard_task_becomes_that_of_a_half_solved_one(size: int, by_hardness: bool) -> None:
    """As large as asked for, and with one rollout fewer not yet; the second wave as good as the first."""
    budget = Rebalanced(size, 10_000, by_hardness)
    for right in range(1, (size + 1) // 2):
        share = right / size
        goal = size / 2 * (2 * (1 - share) if by_hardness else 1)
        count = size + budget.rollouts(make_group(rewards(right, size)))
        assert size_of_credit(right, size) == pytest.approx(2 * right * (1 - share)), "n * 2a(1 - a)"
        advantage = 2 * share * (1 - share)
        assert count * advantage >= goal - 1e-9 > (count - 1) * advantage - 2e-9


def test_the_second_wave_is_the_last_one() -> None:
    """Whatever it brought: the first `size` rollouts decide."""
    budget = Rebalanced(8, 32)
    for later in (rewards(0, 11), rewards(11, 11)):
        assert budget.rollouts(make_group([*rewards(1, 8), *later])) == 0
    assert budget.rollouts(make_group([*rewards(1, 8), *rewards(0, 4)])) == 7, "what is missing of the 11"


def test_only_own_scored_rollouts_measure_difficulty() -> None:
    group = make_group([1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0], failed=[4], pruned=[5])
    group.rollouts[6].origin = Origin.TEACHER
    # 1 of 5: S = 0.32, peak 2.5: (2.5 - 1.6) / 0.32 = 2.81
    assert Rebalanced(8, 32).rollouts(group) == 3
    assert Rebalanced(2, 8).rollouts(make_group([0.0, 0.0], failed=[0, 1])) == 0, "nothing is known of it"
    # 0 of 2 is half a success: S = 0.375, (1 - 0.75) / 0.375 = 0.67
    assert Rebalanced(2, 8).rollouts(make_group([0.0, 0.0])) == 1
    assert Rebalanced(3, 4).rollouts(make_group([0.0, 0.0, 0.0])) == 1, "cut at the most"


def test_metrics_of_added_rollouts() -> None:
    saved, plain = make_group([0.0, 0.0, 1.0, 0.0]), make_group([1.0, 0.0], number=1)
    assert Rebalanced(2, 8).learn([saved, plain]) == {"rollouts_added": 1.0, "saved_share": 0.5}
    assert Rebalanced(2, 8).learn([make_group([0.0, 1.0, 1.0])]) == {"rollouts_added": 1.0, "saved_share": 0.0}


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="got 8 and 4"):
        Rebalanced(8, 4)
    with pytest.raises(ConfigurationError, match="size"):
        Rebalanced(1, 4)


@dataclass(frozen=True)
class EvenEnd(Reward):
    """Right where the completion ends in an even digit."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    is_inline = True

    def __call__(self, group: Group) -> list[float]:
        return [float(int(t.completion[-1]) % 2 == 0) for t in group.rollouts]


@pytest.mark.parametrize("lag", [0, 2])
def test_in_a_run_hard_tasks_get_a_second_wave_and_nothing_is_lost(model: Path, tmp_path: Path, lag: int) -> None:
    budget = Rebalanced(4, 12)
    run = make_run(
        steps=4, budget=budget, rewards=(EvenEnd(),), admission=BoundedLag(lag), gates=(ZeroVariance(),),
        engine=Scripted(completion, seconds_per_token=1.0),
    )  # fmt: skip
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == [] and flow.ledger.trained_more_than_once() == 0
        groups = [group for step in range(1, 5) for group in flow.ledger.trained_groups(step)]
        made = flow.ledger._rows("SELECT COUNT(*) FROM rollouts GROUP BY number")
    sizes = [len(group.rollouts) for group in groups]
    for group in groups:
        first = Group(group.number, group.task, group.rollouts[:4])
        assert len(group.rollouts) == 4 + budget.rollouts(first), "as the first four asked for"
    # 1 of 4: (2 - 1.5) / 0.375 = 1.33; 0 of 4: (2 - 0.875) / 0.21875 = 5.14
    assert set(sizes) == {size for (size,) in made} == {4, 6, 10}
    added = [sum(size - 4 for size in sizes[4 * step : 4 * step + 4]) / 4 for step in range(4)]
    assert [row["rollouts_added"] for row in recorder.rows] == added and max(added) > 0
