from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.select.drive import Hardest
from strop.types import Task
from tests.control.samplers.trying import draws, group_of, restored

ENV = Arithmetic(4)
PASS = {ENV.task(index).id: right for index, right in enumerate((4, 0, 2, 8, 1, 6, 3, 8))}  # of 8


def sampler(seed: int = 3) -> Hardest:
    return Hardest((ENV,), 8, (5, 3, 2), (2, 2), seed)


def tried(used: Hardest, step: int, count: int, rates: dict[str, int] = PASS) -> list[Task]:
    """Sample tasks and observe their groups, the last ones first."""
    tasks = draws(used, count, step)
    groups = [
        group_of(task, [1.0] * rates[task.id] + [0.0] * (8 - rates[task.id]), step, n) for n, task in enumerate(tasks)
    ]
    for group in reversed(groups):
        used.observe(group)
    return tasks


def passes(tasks: list[Task]) -> list[int]:
    return sorted(PASS[task.id] for task in set(tasks))


def test_all_once_then_the_hardest_of_the_hardest() -> None:
    used = sampler()
    assert len(set(tried(used, 0, 8))) == 8, "a look at all"
    assert passes(tried(used, 1, 5)) == passes(tried(used, 2, 5)) == [0, 1, 2, 3, 4]
    assert passes(tried(used, 3, 3)) == passes(tried(used, 4, 9)) == [0, 1, 2]
    assert passes(tried(used, 5, 4)) == passes(tried(used, 50, 4)) == [0, 1], "the last set has no end"


def test_sets_are_nested_and_get_no_easier_under_a_policy_that_stands_still() -> None:
    used, random = Hardest((ENV,), 40, (20, 10, 5), (2, 2), seed=1), Random(0)
    rates = {ENV.task(index).id: random.randrange(9) for index in range(40)}
    sets = [set(tried(used, step, 40, rates)) for step in range(7)]
    for before, after in pairwise(sets):
        assert after <= before and _mean(after, rates) <= _mean(before, rates)
    assert [len(each) for each in sets] == [40, 20, 20, 10, 10, 5, 5]


def _mean(tasks: set[Task], rates: dict[str, int]) -> float:
    return sum(rates[task.id] for task in tasks) / len(tasks)


def test_each_of_a_set_once_before_any_again() -> None:
    used = sampler()
    tried(used, 0, 8)
    tasks = tried(used, 1, 10)
    assert Counter(tasks[:5]) == Counter(tasks[5:]) and tasks[:5] != tasks[5:]


def test_the_current_phase_decides_and_not_what_was_before() -> None:
    used = sampler()
    tried(used, 0, 8)
    learned = {name: 8 if right == 0 else right for name, right in PASS.items()}
    tried(used, 1, 5, learned)
    assert passes(tried(used, 3, 3)) == [1, 2, 3], "what was never solved is solved now"
    assert used.learn([])["pass_of_left"] == pytest.approx(6 / 24)
    used.observe(group_of(ENV.task(4), [1.0] * 8, version=0))
    assert used.learn([])["pass_of_left"] == pytest.approx(6 / 24), "old weights say nothing any more"


def test_rollouts_of_one_phase_add_up_and_those_of_another_do_not() -> None:
    """At one task: 1 of 4 and 3 of 4 in the first look, then 0 of 2 and 2 of 6 in the set that was chosen."""
    used = Hardest((ENV,), 2, (1,), ())
    (task,) = draws(used, 1)
    for right, count, after in ((1, 4, 1 / 4), (3, 4, 4 / 8)):
        used.observe(group_of(task, [1.0] * right + [0.0] * (count - right)))
        assert used.learn([])["pass_of_left"] == pytest.approx(after)
    used.observe(group_of(draws(used, 1)[0], [1.0] * 4))
    for right, count, after in ((0, 2, 0.0), (2, 6, 2 / 8)):
        assert draws(used, 1, step=1) == [task], "the harder of both"
        used.observe(group_of(task, [1.0] * right + [0.0] * (count - right), version=1))
        assert used.learn([])["pass_of_left"] == pytest.approx(after)


def test_a_set_may_last_one_step() -> None:
    used = Hardest((ENV,), 8, (5, 3), (1,), 3)
    tried(used, 0, 8)
    assert [len(set(tried(used, step, 5))) for step in (1, 2)] == [5, 3]


def test_the_first_set_waits_for_stragglers_and_not_for_ever() -> None:
    used = sampler()
    tasks = draws(used, 8)
    for task in tasks[:7]:
        used.observe(group_of(task, [0.0, 1.0]))
    assert set(draws(used, 8)) == set(tasks), "one is not known yet"
    chosen = set(draws(used, 15))
    assert len(chosen) == 5 and tasks[7] not in chosen, "what always fails is kept last"


def test_groups_of_a_phase_add_up() -> None:
    used = sampler()
    task = draws(used, 1)[0]
    used.observe(group_of(task, [1.0, 1.0, 1.0]))
    used.observe(group_of(task, [0.0, 0.0], number=1))
    assert used.learn([])["pass_of_left"] == pytest.approx(3 / 5)


def test_ties_are_random() -> None:
    kept = set()
    for seed in range(5):
        used = sampler(seed)
        tried(used, 0, 8, dict.fromkeys(PASS, 4))
        kept.add(frozenset(tried(used, 1, 5, dict.fromkeys(PASS, 4))))
    assert len(kept) > 1


def test_the_papers_sets() -> None:
    paper = Hardest((ENV,))
    assert (paper.size, paper.sizes, paper.steps) == (175, (72, 50, 25), (64, 32))
    Hardest((ENV,), 8, (8, 1), (1,))
    Hardest((ENV,), 8, (8,), ())


def test_failed_and_pruned_rollouts_are_no_evidence() -> None:
    used = sampler()
    task = draws(used, 1)[0]
    used.observe(group_of(task, [1.0, 0.0, 1.0, 1.0], failed=[2], pruned=[3]))
    used.observe(group_of(draws(used, 1)[0], [1.0], failed=[0]))
    assert used.learn([]) == {"tasks_left": 8.0, "tasks_dropped": 0.0, "pass_of_left": 0.5}


def test_state_is_restored() -> None:
    first = sampler()
    tried(first, 0, 8)
    tried(first, 1, 3)
    again = restored(sampler(), first)
    for step in (1, 2, 3, 4, 5):
        assert tried(again, step, 7) == tried(first, step, 7)
    assert again.state() == first.state()


def test_refuses_sets_that_grow() -> None:
    for sizes, steps in (((9, 3), (2,)), ((3, 5), (2,)), ((5, 3), ()), ((), ()), ((5, 0), (2,)), ((5, 3), (0,))):
        with pytest.raises(ConfigurationError, match="falling sizes of at most 8 tasks"):
            Hardest((ENV,), 8, sizes, steps)
