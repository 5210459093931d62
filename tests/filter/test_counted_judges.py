"""Judges that rewards ask in their worker process are counted like all others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from strop.errors import LLMClientError
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.scoring import Scorer, is_inline
from strop.generate.llm_clients.named import Named, check_answers, taken
from strop.generate.llm_clients.without_model import OwnFunction
from strop.recipes.reward.fapo.reward import Flawed
from strop.types import Group, Message, ScoreRange
from strop.workers.untrusted_answers import NoAnswer
from tests.building import make_group

OWN = """
def right(completion):
    return 1.0

right.low, right.high = 0.0, 1.0

def judge(prompt):
    return "-1"

def silent(prompt):
    return "I would rather not say."

def broken(prompt):
    raise OSError("no quota")
"""


def asked(number: int) -> Group:
    """Two rollouts of two paragraphs."""
    group = make_group([0.0, 0.0], number=number)
    texts = [f"first {number}\n\nthen {place}" for place in range(2)]
    for rollout, text in zip(group.rollouts, texts, strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", text)),)
    return group


def judged(folder: Path, function: str) -> Named:
    """The judge of a reward in another process, after three groups."""
    (folder / "own.py").write_text(OWN)
    client = Named(OwnFunction(f"{folder}/own.py:{function}"), "judge", function, window=4)
    reward = Flawed(PythonFunction(f"{folder}/own.py:right", grades=ScoreRange()), client)
    assert not is_inline(reward)

    async def score() -> None:
        scorer = Scorer((reward,), 20.0, workers=1)
        for number in range(3):
            await scorer(asked(number))
        await scorer.close()

    asyncio.run(score())
    return client


def test_questions_in_another_process_are_counted(tmp_path: Path) -> None:
    client = judged(tmp_path, "judge")
    check_answers([client])
    assert taken([client]) == {"judge/asked": 6.0, "judge/failed": 0.0, "judge/unread": 0.0}
    assert taken([client]) == {}


@pytest.mark.parametrize(
    ("function", "name", "why"), [("silent", "unread", "cannot be read"), ("broken", "failed", "OSError: no quota")]
)
def test_a_judge_without_answers_there_stops_the_run(function: str, name: str, why: str, tmp_path: Path) -> None:
    client = judged(tmp_path, function)
    with pytest.raises(LLMClientError, match=rf"judge={function}: 4 of the last 4 .*{why}.*first wrong one"):
        check_answers([client])
    assert taken([client])[f"judge/{name}"] == 6.0


def test_counts_that_nobody_vouches_for_are_refused() -> None:
    client = Named(OwnFunction(f"{__file__}:judged"))
    good = {"counts": {"asked": 1}, "lost": [False], "asked": "q", "problem": ""}
    client.add(good)
    for wrong in (
        [],
        good | {"counts": {"paid": 1}},
        good | {"counts": {"asked": -1}},
        good | {"counts": {"asked": "1"}},
        good | {"lost": 3},
    ):
        with pytest.raises(NoAnswer):
            client.add(wrong)
    assert taken([client])["judge/asked"] == 1.0
