"""Files, columns and rewards of somebody's own in a setting: what is asked for is what a run has, or it is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strop.capabilities import inside
from strop.environments.data.rows import columns_of
from strop.environments.data.table import Table
from strop.errors import ConfigurationError, DataError
from strop.filter.rewards.from_environment import Checked, Earned
from strop.filter.rewards.python_function import PythonFunction
from strop.launch.checks.preflight import check
from strop.launch.running.launch import launch
from strop.recipes import build, parameters_of, recipe_named
from strop.recipes.classics.dpo import dpo
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.roles import Reward
from strop.storage.ledger.ledger import Ledger
from tests.tiny_models import save_pocket_like


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def one(completion): return 1.0\ndef two(completion): return 2.0\n")
    rows = [{"prompt": f"{n}+1", "chosen": str(n + 1), "rejected": "0"} for n in range(40)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "bare.jsonl").write_text("\n".join(json.dumps({"ask": f"{n}?", "say": n}) for n in range(40)))
    return tmp_path


@pytest.mark.usefixtures("here")
def test_rewards_of_ones_own_join_or_replace_that_of_the_env() -> None:
    own, other = PythonFunction("mine.py:one"), PythonFunction("mine.py:two")
    assert grpo(Setting(reward="mine.py:one")).rewards == (own, Earned(weight=0.0)), (
        "the environment says what is right"
    )
    both = grpo(Setting(reward="env+mine.py:one + mine.py:two"))
    assert both.rewards == (Earned(), own, other) and both.evaluation.rewards == (Earned(),)
    with pytest.raises(ConfigurationError, match=r"rlsc has rewards of its own, so reward=mine.py:one does nothing"):
        build(recipe_named("rlsc"), {"reward": "mine.py:one"})
    assert build(recipe_named("grpo"), {"reward": "env"}).rewards == (Earned(),)
    with pytest.raises(ConfigurationError, match=r"there is no file other.py"):
        grpo(Setting(reward="other.py:one"))


@pytest.mark.usefixtures("here")
def test_what_judges_completions_is_the_answer_or_a_reward() -> None:
    with pytest.raises(DataError, match="`prompt` is missing"):
        grpo(Setting(env="bare.jsonl"))
    named = grpo(Setting(env="bare.jsonl", columns=("ask", "say")))
    assert named.envs[0].task(0).answer.isdigit() and named.rewards == (Earned(),)
    with pytest.raises(
        ConfigurationError, match=r"nothing scores completions to bare.jsonl \(as asked for\): name the col"
    ):
        check(grpo(Setting(env="bare.jsonl", columns=("ask", ""), answer="none", groups_per_step=2)))
    judged = grpo(Setting(env="bare.jsonl", columns=("ask", ""), reward="mine.py:one"))
    assert judged.evaluation.rewards == judged.rewards == (PythonFunction("mine.py:one"),)
    assert columns_of(judged.envs[0].task(0)).keys() == {"say"}
    with pytest.raises(ConfigurationError, match="columns=ask,say applies to task files only; arithmetic:4 scores"):
        grpo(Setting(columns=("ask", "say")))


def test_given_pairs_are_trained_and_nothing_is_sampled(here: Path) -> None:
    save_pocket_like(here / "model")
    small = Setting(env="pairs.jsonl", model="model", steps=1, groups_per_step=3, heldout_tasks=0, heldout_every=0)
    launch(dpo(small, pairs="given"), here / "runs", "run")
    ledger = Ledger(here / "runs" / "run" / "ledger.db")
    groups = [ledger.group(number) for number in range(3)]
    ledger.close()
    for group in groups:
        columns = columns_of(group.task)
        said = [(rollout.completion, rollout.reward, rollout.num_sampled) for rollout in group.rollouts]
        assert said == [(columns["chosen"], 1.0, 0), (columns["rejected"], 0.0, 0)]
    assert grpo(Setting(model="runs/run")).model == "runs/run/checkpoints/step-1"
    with pytest.raises(ConfigurationError, match="arithmetic has no preferences: each row needs the columns"):
        check(dpo(Setting(), pairs="given"))


@pytest.mark.parametrize(
    "recipe", ["rlsc", "mm_upt", "ettrl", "comas", "openrs", "rlcf", "rubric_anchors", "trm", "echo_ec"]
)
def test_recipes_without_labels_take_rows_without_answers(tmp_path: Path, recipe: str) -> None:
    """The judge is somebody's own; what is measured is not called accuracy."""
    path = tmp_path / "open.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"Write a line about {n} pears."}) + "\n" for n in range(120)))
    (tmp_path / "judge.py").write_text("async def judge(question: str) -> str:\n    return '1: faithful; x; correct'\n")
    asked = {"judge": f"{tmp_path}/judge.py:judge"} if "judge" in parameters_of(recipe_named(recipe)) else {}
    run = build(recipe_named(recipe), {"env": str(path)} | asked)
    check(run)
    assert run.evaluation.tasks == 0 and not any(isinstance(each, Checked) for each in inside(run.rewards, Reward))


def test_rows_without_answers_vote_by_the_answers_of_their_completions(tmp_path: Path) -> None:
    path = tmp_path / "open.jsonl"
    path.write_text("".join(json.dumps({"question": f"What is {n} + {n}?"}) + "\n" for n in range(9)))
    env = Table(str(path))
    said = ["So we add. The answer is 4.", "<think>2 and 2</think>4", "Well: \\boxed{4}", "It is\n#### 4"]
    assert {env.answer(each) for each in said} == {"4"} and not env.pays
    assert Table(str(path), rule="number").answer("it is 4.0 pears") == "4"
    with pytest.raises(ConfigurationError, match=r"nothing scores completions to .*open.jsonl.*reward=FILE.py"):
        check(build(recipe_named("grpo"), {"env": str(path), "groups_per_step": 2}))
