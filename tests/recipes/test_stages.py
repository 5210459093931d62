"""Recipes of several stages reach all of them, with the sizes of their papers."""

from __future__ import annotations

from collections import Counter

from strop.control.beliefs.counts import Counts
from strop.control.budgets.fixed import Fixed
from strop.control.samplers.hardest import Hardest
from strop.control.samplers.unsolved import Unsolved
from strop.recipes import build, recipe_named
from strop.run import Run
from tests.control.samplers.trying import group_of


def test_drive_tries_all_tasks_and_then_its_three_sets_for_64_32_and_32_steps() -> None:
    assert _steps_of_sets(build(recipe_named("drive"), {})) == {175: 44, 72: 64, 50: 32, 25: 32}


def test_drive_shares_out_what_is_left_of_other_sizes() -> None:
    """24 tasks in 3 steps of 8; of the 20 that are left 10, 5 and 5."""
    sizes = {"steps": 23, "groups_per_step": 8, "tasks": 24, "first": 6, "second": 4, "third": 2}
    assert _steps_of_sets(build(recipe_named("drive"), sizes)) == {24: 3, 6: 10, 4: 5, 2: 5}


def _steps_of_sets(run: Run) -> Counter[float]:
    """How many steps have each number of tasks to choose from."""
    sampler, found = run.sampler, Counter[float]()
    assert isinstance(sampler, Hardest)
    for step in range(run.steps):
        drawn = [sampler.next(step, Counts()) for _ in range(run.groups_per_step)]
        found[sampler.learn([])["tasks_left"]] += 1
        for place, task in enumerate(drawn):
            sampler.observe(group_of(task, [float(place % 2), 0.0], version=step))
    return found


def test_acereason_has_six_stages_of_the_papers_lengths_attempts_and_filters() -> None:
    run: Run | None = build(recipe_named("acereason_nemotron"), {"max_tokens": 64})
    stages = []
    while run is not None:
        assert isinstance(run.budget, Fixed)
        is_filtered = isinstance(run.sampler, Unsolved)
        stages.append((run.worlds[0].name, run.sampling.max_tokens, run.budget.size, is_filtered))
        run = run.warmup
    assert stages[::-1] == [
        ("arithmetic", 24, 8, False),
        ("arithmetic", 32, 16, False),
        ("arithmetic", 48, 16, True),
        ("countdown", 48, 8, False),
        ("countdown", 64, 16, True),
        ("arithmetic", 64, 16, True),
    ]
