"""Recipes of several stages reach all of them, with the sizes of their papers."""

from __future__ import annotations

from collections import Counter

from strop.capabilities import inside
from strop.control.budgets.fixed import Fixed
from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.sequential import Staged
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.judging.multiple_choice import Choice
from strop.environments.judging.verdict_questions import Judged
from strop.recipes import build, recipe_named
from strop.recipes.rollout.brorl import RootOfRollouts
from strop.recipes.select.acereason_nemotron import Unsolved
from strop.recipes.select.drive import Hardest
from strop.run import Run
from strop.training.trainers.torch import TorchTrainer
from tests.control.samplers.trying import group_of


def test_drive_tries_all_tasks_and_then_its_three_sets_for_64_32_and_32_steps() -> None:
    assert _steps_of_sets(build(recipe_named("drive"), {})) == {175: 44, 72: 64, 50: 32, 25: 32}


def test_drive_shares_out_what_is_left_of_other_sizes() -> None:
    """24 tasks in 3 steps of 8; of the 20 that are left 10, 5 and 5."""
    sizes = {"steps": 23, "groups_per_step": 8, "tasks": 24, "first": 6, "second": 4, "third": 2}
    assert _steps_of_sets(build(recipe_named("drive"), sizes)) == {24: 3, 6: 10, 4: 5, 2: 5}


def test_drive_gives_each_set_a_step_where_hardly_any_are_left() -> None:
    """24 tasks in 3 steps of 8, and one more step."""
    sizes = {"steps": 4, "groups_per_step": 8, "tasks": 24, "first": 6, "second": 4, "third": 2}
    sampler = build(recipe_named("drive"), sizes).sampler
    assert isinstance(sampler, Hardest) and sampler.steps == (1, 1)


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


def test_brorl_scales_from_the_rollouts_of_one_optimizer_step() -> None:
    """4 groups of 8 in 4 steps: 8 rollouts in each before it is broad."""
    trainer = build(recipe_named("brorl"), {"groups_per_step": 4}).trainer
    assert isinstance(trainer, TorchTrainer) and trainer.step_scale == RootOfRollouts(8)


def test_curr_reft_asks_about_all_envs_in_each_of_its_stages() -> None:
    run = build(recipe_named("curr_reft"), {"env": "arithmetic:1+arithmetic:2", "steps": 9})
    assert run.warmup is not None and isinstance(run.warmup.sampler, Staged) and isinstance(run.sampler, Uniform)
    stages = [[(type(env), env.level) for env in inside(stage, Uniform)[0].envs] for stage in run.warmup.sampler.stages]
    kinds = (Judged, Choice, Arithmetic)
    assert stages == [[(kind, 1), (kind, 2)] for kind in kinds] and run.warmup.sampler.steps == (3, 3)
    assert run.sampler.envs == (Arithmetic(1), Arithmetic(2))


def test_acereason_has_six_stages_of_the_papers_lengths_rollouts_and_filters() -> None:
    run: Run | None = build(recipe_named("acereason_nemotron"), {"max_tokens": 64})
    stages = []
    while run is not None:
        assert isinstance(run.budget, Fixed)
        is_filtered = isinstance(run.sampler, Unsolved)
        stages.append((run.envs[0].name, run.sampling.max_tokens, run.budget.size, is_filtered))
        run = run.warmup
    assert stages[::-1] == [
        ("arithmetic", 24, 8, False),
        ("arithmetic", 32, 16, False),
        ("arithmetic", 48, 16, True),
        ("countdown", 48, 8, False),
        ("countdown", 64, 16, True),
        ("arithmetic", 64, 16, True),
    ]
