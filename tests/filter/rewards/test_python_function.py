"""Anybody's function in a file is a reward, and mistakes in it are named."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from strop.errors import ConfigurationError, RewardError
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.scoring import Scorer, Scores
from strop.types import Group, Outcome
from tests.filter.test_scoring import group_of

NAMED = """
def seen(completion, messages, unit, factor=2): return len(messages) * 100 + len(unit) * 10 + factor
def everything(**offered):
    return sum(name in offered for name in ("prompt", "completion", "answer", "messages", "unit"))
def unknown(completion, untis): return 1.0
def of_group(prompts, completions, unit, answer, **kwargs):
    assert prompts == ["1+1="] * 3 and answer == ["2"] * 3 and set(kwargs) == {"completion_ids"}
    return [None if said == "what" else float(said) + len(of) for said, of in zip(completions, unit)]
async def later(completions, **kwargs): return [len(said) for said in completions]
def of_chat(prompts, completions, **kwargs):
    assert all(asked == [{"role": "user", "content": "1+1="}] for asked in prompts)
    return [float(said[0]["content"]) for said in completions if said[0]["role"] == "assistant"]
"""
CODE = """
from dataclasses import dataclass
@dataclass
class Wanted:
    text: str
def closeness(prompt: str, completion: str, answer: str) -> float:
    print("looking")
    assert prompt == "1+1="
    return 1.0 / (1.0 + abs(float(completion) - float(Wanted(answer).text)))
"""


def saved(folder: Path, code: str = CODE) -> Path:
    (folder / "mine.py").write_text(code)
    return folder / "mine.py"


def score(reward: PythonFunction, group: Group) -> Scores:
    async def run() -> Scores:
        scorer = Scorer([reward])
        try:
            return await scorer(group)
        finally:
            await scorer.close()

    return asyncio.run(run())


def test_the_function_is_called_with_texts_in_the_worker(tmp_path: Path) -> None:
    group = group_of("2", "5", "what")
    score(PythonFunction(f"{saved(tmp_path)}:closeness", weight=2.0), group)
    assert [rollout.reward for rollout in group.rollouts] == [2.0, 0.5, 0.0]
    assert group.rollouts[0].rewards == {"closeness": 1.0}
    assert group.rollouts[2].outcome is Outcome.FAILED
    assert group.rollouts[2].error.startswith("reward closeness: ValueError: could not convert")


def test_it_is_picklable_after_use_and_its_text_makes_it_again(tmp_path: Path) -> None:
    reward = PythonFunction(f"{saved(tmp_path)}:closeness")
    assert reward(group_of("2")) == [1.0]
    assert pickle.loads(pickle.dumps(reward)) == reward == eval(repr(reward))


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r'need.*"file.py:function", got .*mine.py'):
        PythonFunction(str(saved(tmp_path)))
    with pytest.raises(ConfigurationError, match=r"there is no file .*other\.py"):
        PythonFunction(f"{tmp_path}/other.py:closeness")
    with pytest.raises(ConfigurationError, match="no function closenes; did you mean closeness"):
        PythonFunction(f"{saved(tmp_path)}:closenes")
    with pytest.raises(ConfigurationError, match=r"mine\.py, line 2 is no valid Python: "):
        PythonFunction(f"{saved(tmp_path, 'x = 1' + chr(10) + 'def reward(:')}:reward")
    for low in ("1e999", "-1e999", "9" * 400, "float('nan')", "1"):
        stated = f"def reward(completion): return 0\nreward.low = {low}\nreward.high = 1"
        with pytest.raises(ConfigurationError, match=r"need.* both|must be a number"):
            PythonFunction(f"{saved(tmp_path, stated)}:reward")
    with pytest.raises(
        RewardError, match="the file has no function reward; did you mean"
    ):  # which only running it can tell
        score(PythonFunction(f"{saved(tmp_path, 'x = 1; from os import *')}:reward"), group_of("2"))


def test_a_file_is_not_run_to_see_what_it_holds(tmp_path: Path) -> None:
    for bound in ("reward = print", "from os import getpid as reward", "class reward: pass", "import reward.more"):
        PythonFunction(f"{saved(tmp_path, 'raise SystemExit' + chr(10) + bound)}:reward")


def with_columns(columns: str, *completions: str) -> Group:
    group = group_of(*completions)
    group.task = replace(group.task, columns=columns)
    for rollout in group.rollouts:
        rollout.task = group.task
    return group


def test_a_function_is_given_what_its_parameters_name(tmp_path: Path) -> None:
    path, group = saved(tmp_path, NAMED), with_columns('{"unit": "kg"}', "2")
    assert PythonFunction(f"{path}:seen")(group) == [222]
    assert PythonFunction(f"{path}:everything")(group) == [5]
    with pytest.raises(TypeError, match=r"asks for 'untis', and there is no such column: did you mean unit"):
        PythonFunction(f"{path}:unknown")(group)


def test_functions_of_trl_are_rewards_as_they_are(tmp_path: Path) -> None:
    """Lists in and a list out; None counts nothing; prompts and completions are chats where the row has a chat."""
    path, group = saved(tmp_path, NAMED), with_columns('{"unit": "kg"}', "2", "5", "what")
    assert PythonFunction(f"{path}:of_group")(group) == [4.0, 7.0, 0.0]
    score(PythonFunction(f"{path}:later"), group)
    assert [rollout.reward for rollout in group.rollouts] == [1.0, 1.0, 4.0]
    chat = with_columns('{"prompt": [{"role": "user", "content": "1+1="}]}', "2", "5")
    assert PythonFunction(f"{path}:of_chat")(chat) == [2.0, 5.0]
