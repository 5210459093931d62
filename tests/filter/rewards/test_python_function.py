"""Anybody's function in a file is a reward, and mistakes in it are named."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import pytest

from strop.errors import ConfigurationError, RewardError
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.score import Scorer, Scores
from strop.types import Group, Outcome
from tests.filter.test_score import group_of

CODE = """
from dataclasses import dataclass
@dataclass
class Wanted:
    text: str
def closeness(prompt: str, reply: str, answer: str) -> float:
    print("looking")
    assert prompt == "1+1="
    return 1.0 / (1.0 + abs(float(reply) - float(Wanted(answer).text)))
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
    assert [attempt.reward for attempt in group.trajectories] == [2.0, 0.5, 0.0]
    assert group.trajectories[0].rewards == {"closeness": 1.0}
    assert group.trajectories[2].outcome is Outcome.FAILED
    assert group.trajectories[2].error.startswith("reward closeness: ValueError: could not convert")


def test_it_is_picklable_after_use_and_its_text_makes_it_again(tmp_path: Path) -> None:
    reward = PythonFunction(f"{saved(tmp_path)}:closeness")
    assert reward(group_of("2")) == [1.0]
    assert pickle.loads(pickle.dumps(reward)) == reward == eval(repr(reward))


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r'need.*"file.py:function", got .*mine.py'):
        PythonFunction(str(saved(tmp_path)))
    with pytest.raises(ConfigurationError, match=r"there is no file .*other\.py"):
        PythonFunction(f"{tmp_path}/other.py:closeness")
    with pytest.raises(RewardError, match="no function closenes; did you mean closeness"):
        score(PythonFunction(f"{saved(tmp_path)}:closenes"), group_of("2"))
    with pytest.raises(RewardError, match=r"PythonFunction cannot be loaded.*SyntaxError"):
        score(PythonFunction(f"{saved(tmp_path, 'def reward(:')}:reward"), group_of("2"))
