"""A user's own rewards in every recipe: several add up by their declared weights, or are refused with a sentence."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from strop.capabilities import inside
from strop.catalogue.record import recipe_files
from strop.errors import ConfigurationError
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.scoring import Scorer
from strop.recipes import build, parameters_of, recipe_named
from strop.recipes.objective.alp import AdaptiveLength
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.types import Group
from tests.building import make_group

CODE = """
def style(completion):
    return float(len(completion) % 7)

def closeness(completion):
    return float(completion.count("1"))

closeness.low, closeness.high = 0.0, 3.0

def kind_of(kind):
    return float(kind == "odd")
"""
AT_LEAST = 150  # recipes that take them


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(CODE)
    rows = [
        {"prompt": f"{n}+7=?", "answer": str(n + 7), "completion": f"It is {n} and 7. So {n + 7}.", "kind": "odd"}
        for n in range(80)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def made(name: str, reward: str, **fields: str) -> Run | str:
    recipe = recipe_named(name)
    required = [each.name for each in parameters_of(recipe).values() if each.is_required]
    try:
        return build(recipe, dict.fromkeys(required, "TEACHER") | {"reward": reward, **fields})
    except ConfigurationError as error:
        return str(error)


async def scored(run: Run, group: Group) -> None:
    scorer = Scorer(run.rewards, 10.0, workers=1)
    await scorer(group)
    await scorer.close()


def test_several_rewards_add_up_by_their_weights_in_every_recipe(files: Path) -> None:
    """Each weight arrives as it was declared, up to one factor of the recipe; what refuses two refuses one."""
    one, other = f"{files}/own.py:style", f"{files}/own.py:closeness"
    taken = 0
    for name in recipe_files():
        run = made(name, f"0.25*{one}+2*{other}")
        if isinstance(run, str):
            assert isinstance(made(name, other), str) and "reward" in run, f"{name} refuses several, and not one: {run}"
            continue
        weights = {each.path.rpartition(":")[2]: each.weight for each in inside(run.rewards, PythonFunction)}
        assert weights["closeness"] == pytest.approx(8 * weights["style"]), name
        taken += 1
    assert taken > AT_LEAST


def test_the_reward_of_a_user_stays_the_score_of_passages_and_of_tools(files: Path) -> None:
    rows = [
        {"prompt": f"Which is {n}?", "answer": "x", "passages": ["a", "b", "c"], "gold": [1], "kind": "odd"}
        for n in range(40)
    ]
    (files / "cited.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name, env in (("rag_rl", "cited.jsonl"), ("verltool", "rows.jsonl")):
        run = made(name, f"{files}/own.py:kind_of", env=str(files / env))
        assert not isinstance(run, str), run
        task = run.envs[0].task(0)
        group = make_group([0.0, 0.0])
        for rollout in group.rollouts:
            rollout.task = task
        asyncio.run(scored(run, Group(0, task, group.rollouts)))
        assert [rollout.rewards["kind_of"] for rollout in group.rollouts] == [1.0, 1.0], [
            r.error for r in group.rollouts
        ]
        assert group.rollouts[0].success == 0.0, "the answer says what is right, beside a reward without a range"


def test_the_solve_rate_is_that_of_successes_on_any_scale() -> None:
    """Rewards from 1 to 10: one of two is right, so each token costs half of beta."""
    group = make_group([10.0, 1.0], lengths=[4, 2])
    for rollout, success in zip(group.rollouts, (1.0, 0.0), strict=True):
        rollout.facts["success"] = success
    assert AdaptiveLength(GroupMean(), 0.1).rewards(group).tolist() == pytest.approx([9.8, 0.9])
    run = made("alp", "own.py:f")
    assert isinstance(run, str)
