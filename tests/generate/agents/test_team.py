"""strop.generate.agents.team: who reads what, in which policy name, and what the environment pays."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.environments.bundled.guess import Guess, parse
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.generate.agents.team import Team
from strop.generate.rollout import play
from strop.types import Start
from tests.generate.talking import Recording, policy_of, save_folder


def test_roles_hear_of_each_other_and_the_last_one_acts(tmp_path: Path) -> None:
    env = Guess(1)
    task = next(each for each in map(env.task, range(99)) if int(each.answer) > parse(prompt_of(each))[0])
    low = parse(prompt_of(task))[0]
    engine = Recording([f"<think>low</think>{low}|", "no|", f"{low}|", f"{task.answer}|"])
    policy = policy_of(save_folder(tmp_path), engine)
    made = asyncio.run(play(Team(("planner", "critic", "actor")), env, policy.dialogue(task, Start("0/0", 1))))
    assert [turn.sampling.policy_name for turn in made.turns] == ["planner", "critic", "actor", "actor"]
    assert [turn.fresh for turn in made.turns] == [True, True, True, False], "a context for each role"
    assert made.turn_rewards == (0.0, 0.0, 0.0, 1.0) and made.completion == task.answer
    read = [policy.template.text(turn.prompt) for turn in made.turns]
    question = task.messages[0].content
    assert question in read[0] and "hint" not in read[0]
    assert f"{question} hint: low {low}" in read[1] and f"{question} hint: low {low} no" in read[2]
    assert "higher" in read[3]


def test_a_team_is_refused_that_cannot_talk() -> None:
    for wrong in ({"roles": ("a", "a")}, {"roles": ()}, {"asks": "{question}"}, {"max_turns": 0}):
        with pytest.raises(ConfigurationError, match="different roles"):
            Team(**wrong)  # type: ignore[arg-type]
