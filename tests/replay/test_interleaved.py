"""Demonstrations that wait for a step of their own: drawn when there are enough, and trained after the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.compose import Compose
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.pipeline import learn, train
from strop.recipes import build, recipe_named
from strop.recipes.guide.relift import TaughtApart
from strop.replay.fifo import Fifo
from strop.replay.interleaved import Interleaved
from strop.run import Run
from strop.training.reductions.means import ConstantLength, TokenMean
from strop.types import Group, Origin
from tests.building import make_group
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like
from tests.training.tiny import make_rollout, make_turn, save_llama


def shown(number: int, is_shown: bool = True) -> Group:
    """Two rollouts of the policy, and a demonstration where there is one."""
    group = make_group([0.0, 0.0, 1.0][: 3 if is_shown else 2], number=number)
    if is_shown:
        group.rollouts[2].origin, group.rollouts[2].comparison_group = Origin.TEACHER, "shown"
    return group


def names(groups: list[Group] | None) -> list[list[str]] | None:
    return None if groups is None else [[rollout.id for rollout in group.rollouts] for group in groups]


def own(*numbers: int) -> list[list[str]]:
    return [[f"{number}-0", f"{number}-1"] for number in numbers]


def test_demonstrations_come_once_there_are_enough_and_the_newest_first() -> None:
    buffer = Interleaved(Fifo(), 3)
    for number in range(2):
        buffer.add(shown(number))
    assert len(buffer) == 2 and names(buffer.sample(3, 0)) is None
    assert names(buffer.sample(2, 0)) == own(0, 1), "two wait, and three make a step"
    assert buffer.learn([]) == {"demonstrations": 0.0, "demonstrations_waiting": 2.0} and len(buffer) == 0
    for number, is_shown in ((2, False), (3, True), (4, True)):
        buffer.add(shown(number, is_shown))
    assert names(buffer.sample(1, 1)) == own(2)
    assert names(buffer.sample(2, 2)) == [*own(3, 4), ["4-2"], ["3-2"], ["1-2"]], "the oldest waits on"
    buffer.add(shown(5, is_shown=False))
    drawn = buffer.sample(1, 3)
    assert names(drawn) == own(5) and buffer.learn(drawn or [])["demonstrations_waiting"] == 1.0


def test_one_waits_at_least_until_its_group_is_drawn() -> None:
    buffer = Interleaved(Fifo(), 1)
    buffer.add(shown(0))
    buffer.add(shown(1))
    drawn = buffer.sample(1, 0)
    assert names(drawn) == [*own(0), ["0-2"]] and buffer.learn(drawn or [])["demonstrations"] == 1.0


def test_what_failed_is_shown_to_nobody() -> None:
    buffer, group = Interleaved(Fifo(), 1), make_group([0.0, 0.0, 0.0], failed=[2])
    group.rollouts[2].origin = Origin.TEACHER
    buffer.add(group)
    assert names(buffer.sample(1, 0)) == own(0)


def test_it_is_put_back_where_it_was() -> None:
    groups = {number: shown(number) for number in range(4)}
    buffer = Interleaved(Fifo(), 3)
    for number in range(3):
        buffer.add(groups[number])
    buffer.sample(2, 0)
    again = Interleaved(Fifo(), 3)
    again.inner.restore(buffer.inner.state(), shown)  # as a checkpoint does, part by part
    again.restore(buffer.state(), shown)
    for each in (buffer, again):
        each.add(shown(3))
    assert names(again.sample(2, 1)) == names(buffer.sample(2, 1)) == [*own(2, 3), ["3-2"], ["2-2"], ["1-2"]]
    assert again.state() == buffer.state() == {"shown": [0]}
    with pytest.raises(ConfigurationError, match="size >= 1, got 0"):
        Interleaved(Fifo(), 0)


def test_steps_of_demonstrations_have_a_reduction_of_their_own() -> None:
    reduction = TaughtApart(ConstantLength(10), TokenMean())
    mixed = make_group([0.0, 1.0], lengths=[2, 3])
    mixed.rollouts[1].origin = Origin.TEACHER
    assert {name: share.tolist() for name, share in reduction([mixed]).items()} == {
        "0-0": [pytest.approx(1 / 20)] * 2,
        "0-1": [pytest.approx(1 / 20)] * 3,
    }
    mixed.rollouts[0].origin = Origin.TEACHER
    assert reduction([mixed])["0-1"].tolist() == [pytest.approx(1 / 5)] * 3


def opened_run(folder: Path) -> Run:
    sizes = {"model": str(folder), "groups_per_step": 2, "group_size": 2, "max_tokens": 4, "learning_rate": 1e-2}
    run = replace(build(recipe_named("relift"), sizes), minibatches=1)
    run.trainer.open(folder, 0)
    return run


def drawn(random: np.random.Generator) -> tuple[list[Group], list[Group]]:
    """Two groups of the policy with advantage to give, and two demonstrations."""

    def rollouts(number: int, count: int, version: int) -> Group:
        made = [
            make_rollout(f"{number}/{i}", [make_turn([3, 4], random.integers(0, 23, 3).tolist(), version=version)])
            for i in range(count)
        ]
        return Group(number, made[0].task, made)

    policy, teacher = [rollouts(n, 2, 1) for n in (0, 1)], [rollouts(n, 1, -1) for n in (2, 3)]
    for group in policy:
        group.rollouts[0].reward = 1.0
    for group in teacher:
        group.rollouts[0].origin = Origin.TEACHER
    return policy, teacher


def test_a_step_and_then_a_supervised_step_to_the_bit(tmp_path: Path) -> None:
    folder = save_llama(tmp_path)
    together, apart = opened_run(folder), opened_run(folder)
    policy, teacher = drawn(np.random.default_rng(0))
    learn(together, [*policy, *teacher], 1, [])
    policy, teacher = drawn(np.random.default_rng(0))
    learn(apart, policy, 1, [])
    between = {name: tensor.clone() for name, tensor in apart.trainer.weights().items()}
    learn(apart, teacher, 1, [])
    ends = together.trainer.weights(), apart.trainer.weights()
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[1])
    assert not all(torch.equal(between[name], ends[1][name]) for name in between), "the second step moved something"


def test_in_a_run_hard_tasks_are_shown_and_easy_ones_are_not(tmp_path: Path) -> None:
    """Every second task is solved; four demonstrations make a step, and their tokens count as nobody's."""
    model, env = save_pocket_like(tmp_path / "model"), Compose(1)
    recipe = build(recipe_named("relift"), {"env": "compose:1", "group_size": 3, "collected": 4})
    easy = {env.task(index).messages[0].content: env.task(index) for index in range(0, 200, 2)}

    def completion(prompt: str, key: int) -> str:
        known = [task for question, task in easy.items() if question in prompt]
        return env.solution(known[0]) if known and key % 2 else "x"

    parts = {name: getattr(recipe, name) for name in ("budget", "strategy", "buffer")}
    engine, sampler = Scripted(completion), Uniform((env,))
    run = make_run(steps=4, envs=(env,), sampler=sampler, engine=engine, **parts)
    run = replace(run, losses=recipe.losses, reduction=recipe.reduction)
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        draws = [flow.ledger.trained_groups(step) for step in (1, 2, 3, 4)]
        sampled = flow.ledger._rows("SELECT SUM(tokens) FROM rollouts WHERE origin='policy'")[0][0]
    assert recorder.rows[-1]["tokens_generated"] == sampled
    taught = [[group for group in draw if group.rollouts[0].origin is Origin.TEACHER] for draw in draws]
    assert [len(draw) - len(shown) for draw, shown in zip(draws, taught, strict=True)] == [4] * 4
    assert {len(shown) for shown in taught} == {0, 4}, "collected, then all at once"
    assert [row["demonstrations"] for row in recorder.rows] == [len(shown) for shown in taught]
    for group in (group for shown in taught for group in shown):
        (rollout,) = group.rollouts
        assert rollout.reward == 1.0 and rollout.num_sampled == 0 and rollout.comparison_group == "shown"
        siblings = [each for draw in draws for other in draw for each in other.rollouts
                    if other.number == group.number and each.origin is Origin.POLICY]  # fmt: skip
        assert len(siblings) == 3 and all(each.reward == 0.0 for each in siblings)
