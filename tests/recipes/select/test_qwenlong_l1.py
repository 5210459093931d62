from __future__ import annotations

from collections import Counter

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.select.qwenlong_l1 import LengthPhases
from strop.types import Origin, Task
from tests.control.samplers.trying import draws, group_of, prompt, restored
from tests.test_pipeline import make_run

ENVS = (Arithmetic(1), Arithmetic(3), Arithmetic(6))  # prompts of 5, 7 and 13 characters


def phases(**more: float) -> LengthPhases:
    settings = {"carried": 0.5, "most": 0.0} | more
    return LengthPhases(ENVS, (5, 13), (3,), size=6, seed=2, **settings)  # type: ignore[arg-type]


def known(sampler: LengthPhases, means: list[float]) -> list[Task]:
    """Tasks of the first phase, of whose four first rollouts these shares were right."""
    tasks = list(dict.fromkeys(draws(sampler, 6)))
    for number, (task, mean) in enumerate(zip(tasks, means, strict=False)):
        sampler.observe(group_of(task, [1.0] * round(8 * mean) + [0.0] * round(8 * (1 - mean)), 0, number))
    return tasks


def test_a_phase_has_the_prompts_up_to_its_cap_each_once_before_any_again() -> None:
    sampler = phases(carried=0.0)
    first = draws(sampler, 12, step=2)
    assert {len(prompt(task)) for task in first} == {5}
    assert Counter(first[:6]) == Counter(first[6:]) and first[:6] != first[6:], "in a new order"
    second = draws(sampler, 12, step=3)
    assert Counter(len(prompt(task)) for task in second) == {7: 6, 13: 6} and len(set(second)) == 12
    assert {len(prompt(task)) for task in draws(LengthPhases(ENVS, (5, 7), (3,), 6), 40, 9)} == {7}, "13 is too long"


def test_tasks_without_a_success_are_carried_over() -> None:
    sampler = phases(carried=0.25)
    tasks = known(sampler, [0.0, 0.5, 0.0, 0.125, 1.0])
    seen = Counter(draws(sampler, 2000, step=3))
    assert {task for task in seen if len(prompt(task)) == 5} == {tasks[0], tasks[2]}
    assert abs(seen[tasks[0]] + seen[tasks[2]] - 500) < 4 * 375**0.5
    assert abs(seen[tasks[0]] - seen[tasks[2]]) < 4 * 500**0.5, "equally hard, equally often"


def test_weights_are_one_over_the_mean() -> None:
    """Means 1, 1/2 and 1/8 give 1 : 2 : 8; a mean of 0 counts as one right rollout of eight."""
    sampler = phases(most=1.0)
    tasks = known(sampler, [1.0, 0.5, 0.125, 0.0])
    seen = Counter(draws(sampler, 4000, step=3))
    for task, weight in zip(tasks, (1, 2, 8, 8), strict=False):
        wanted = 2000 * weight / 19
        assert abs(seen[task] - wanted) < 4 * wanted**0.5


def test_the_first_group_by_version_measures_difficulty() -> None:
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        sampler = phases()
        task = draws(sampler, 1)[0]
        groups = [group_of(task, rewards, version, number) for rewards, version, number in (
            ([0.0, 0.0], 1, 4), ([1.0, 1.0], 1, 5), ([1.0, 1.0], 2, 3))]  # fmt: skip
        for place in order:
            sampler.observe(groups[place])
        assert task in draws(sampler, 60, step=3), "the others came later"


def test_only_own_rollouts_that_count_are_evidence() -> None:
    sampler = phases()
    tasks = draws(sampler, 3)
    guided = group_of(tasks[0], [0.0, 0.0])
    for rollout in guided.rollouts:
        rollout.origin = Origin.GUIDED
    sampler.observe(guided)
    sampler.observe(group_of(tasks[1], [0.0, 0.0], failed=[0], pruned=[1]))
    sampler.observe(group_of(Arithmetic(2).task(0), [0.0]))
    assert {len(prompt(task)) for task in draws(sampler, 100, step=3)} == {7, 13}, "nothing is known to be hard"
    sampler.observe(group_of(tasks[2], [0.0, 1.0, 1.0], failed=[1], pruned=[2]))
    assert tasks[2] in draws(sampler, 100, step=3)


def test_state_is_restored() -> None:
    first = phases()
    known(first, [0.0, 0.0, 1.0])
    draws(first, 5, step=3)
    again = restored(phases(), first)
    assert draws(again, 50, step=4) == draws(first, 50, step=4)
    late = group_of(draws(phases(), 6)[5], [0.0])
    for sampler in (first, again):
        sampler.observe(late)
    assert draws(again, 50, step=4) == draws(first, 50, step=4), "and knows its tasks"


def test_metrics_of_the_phase_and_carried_tasks() -> None:
    groups = [group_of(env.task(0), [0.0], version) for env, version in zip(ENVS, (3, 3, 2), strict=True)]
    assert phases().learn([*groups, group_of(ENVS[0].task(1), [0.0], 2)]) == {"phase": 0.5, "carried_share": 0.25}


def test_a_single_phase_and_the_papers_choice() -> None:
    plain = LengthPhases(ENVS, (13,), ())
    assert (plain.size, plain.carried, plain.most) == (256, 0.25, 0.0)
    assert {len(prompt(task)) for task in draws(plain, 60)} == {5, 7, 13}
    assert draws(phases(carried=0.0), 6) != draws(LengthPhases(ENVS, (5, 13), (3,), 6, 0.0, seed=3), 6)


def test_refuses_invalid_settings() -> None:
    with pytest.raises(ConfigurationError, match="rising caps"):
        LengthPhases(ENVS, (7, 7), (3,))
    with pytest.raises(ConfigurationError, match="rising caps"):
        LengthPhases(ENVS, (5, 7), ())
    with pytest.raises(ConfigurationError, match=r"got 1\.0 and 0"):
        LengthPhases(ENVS, (5, 7), (3,), carried=1.0)
    with pytest.raises(ConfigurationError, match="got 0 and 8"):
        LengthPhases((), (5, 7), (3,), size=8)
    assert phases().problems(make_run()) == []
    found = LengthPhases(ENVS, (5, 6, 13), (3, 3), size=6).problems(make_run())
    assert len(found) == 1 and found[0].startswith("phase 1 has no task: the 18 prompts have 5 to")
