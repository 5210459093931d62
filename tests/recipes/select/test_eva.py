from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.recipes.select.eva import Evolved, regret
from strop.run_state import Flow
from strop.standins.rewrite.dispatch import Rewriting
from strop.stats.task_lineage import ancestor
from strop.types import Origin
from tests.building import make_group
from tests.control.asking import Told, group_of, written

TASKS = [Arithmetic(4).task(index) for index in range(4)]
SAID = "[task]\n1+2=?\n[answer]\n3"


def test_regret_is_the_range_of_the_policys_own_rewards() -> None:
    group = make_group([0.2, 0.9, 0.5, 1.0, 0.0], failed=[3], pruned=[4])
    assert regret(group) == pytest.approx(0.7)
    group.rollouts[1].origin = Origin.GUIDED
    assert regret(group) == pytest.approx(0.3)
    assert regret(make_group([])) == 0.0


def test_at_two_rollouts_its_mean_is_twice_the_variance() -> None:
    """P(mixed) = 2 p (1 - p) for p = 0.3, over all pairs of outcomes."""
    p, total = 0.3, 0.0
    for one in (0.0, 1.0):
        for other in (0.0, 1.0):
            probability = (p if one else 1 - p) * (p if other else 1 - p)
            total += probability * regret(make_group([one, other]))
    assert total == pytest.approx(2 * p * (1 - p))


def test_tasks_are_sampled_in_proportion_to_their_last_regret(flow: Flow) -> None:
    """Regrets .2, .8 and 0, and 1 which is forgotten for a later 0: one batch in five is of the first."""
    llm_client = Told({"harder": [SAID], "similar": [SAID]})
    task_generator = Evolved(llm_client)
    task_generator.observe(group_of(TASKS[3], [0.0, 1.0]))
    for task, high in zip(TASKS, (0.2, 0.8, 0.0, 0.0), strict=True):
        task_generator.observe(group_of(task, [0.0, high]))
    for number in range(400):
        group = group_of(TASKS[2], [0.0, 0.0], number)
        asyncio.run(task_generator(group, flow.player(group)))
    counts = Counter(parts["task"] for parts in llm_client.asked)
    assert set(counts) == {prompt_of(TASKS[0]), prompt_of(TASKS[1])}
    assert counts[prompt_of(TASKS[0])] / 400 == pytest.approx(0.2, abs=0.06)
    assert Counter(parts["wanted"] for parts in llm_client.asked)["harder"] / 400 == pytest.approx(0.5, abs=0.08)


def test_the_group_itself_is_among_them_and_without_regret_nothing_is_asked(flow: Flow) -> None:
    llm_client = Told({"similar": [SAID]})
    assert written(flow, Evolved(llm_client, 0.0), group_of(TASKS[0], [1.0, 1.0])) == [] and not llm_client.asked
    (made,) = written(flow, Evolved(llm_client, 0.0), group_of(TASKS[1], [0.0, 1.0]))
    assert (prompt_of(made), made.answer, ancestor(made)) == ("1+2=?", "3", TASKS[1].id)


def test_the_pool_is_bounded_and_survives_a_restart(flow: Flow) -> None:
    task_generator, other = Evolved(Rewriting()), Evolved(Rewriting())
    for index in range(300):
        task_generator.observe(group_of(Arithmetic(5).task(index), [0.0, 1.0]))
    other.restore(json.loads(json.dumps(task_generator.state())))
    assert len(task_generator.state()["pool"]) == 256 and other.state() == task_generator.state()
    assert task_generator.learn([]) == {"regret": 1.0}
    for number in range(10):
        group = group_of(TASKS[number % 4], [0.0, 1.0], number)
        assert written(flow, task_generator, group) == written(flow, other, group)


def test_shares_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="0 <= deeper <= 1, got 2"):
        Evolved(deeper=2)
