"""Tasksets of verifiers as environments: prompts are tasks, its rewards pay, and what needs more than a completion is
refused.
"""

from __future__ import annotations

import asyncio
import importlib.util
import pickle
from pathlib import Path

import pytest

from strop.environments.external.verifiers import VerifiersTasks
from strop.environments.isolation.subprocess import Apart
from strop.errors import ConfigurationError
from strop.recipes.environments import parse_envs
from strop.types import Message
from tests.environments.playing import replied

has_verifiers = importlib.util.find_spec("verifiers") is not None
needs = pytest.mark.skipif(not has_verifiers, reason="verifiers is not installed")

SUMS = """
import verifiers.v1 as vf

class Data(vf.TaskData):
    answer: str

class Sum(vf.Task[Data]):
    @vf.reward(weight=2.0)
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.last_completion == self.data.answer)

    @vf.reward
    async def short(self, trace: vf.Trace) -> float:
        return 0.5 if len(trace.last_completion) < 3 and trace.num_turns == 1 else 0.0
{more}

class Sums(vf.Taskset[Sum]):
    def load(self):
        for number in range({count}):
            yield Sum(Data(prompt={prompt}, answer=str(number + 1), system_prompt="be brief"), self.config.task)

__all__ = ["Sums"]
"""
PROMPT = 'f"{number}+1=?"'


@pytest.mark.skipif(has_verifiers, reason="verifiers is installed")
def test_without_verifiers_it_is_said_what_helps() -> None:
    with pytest.raises(ConfigurationError, match=r"pip install 'strop\[clients\]'"):
        VerifiersTasks("sums")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def saved(folder: Path, name: str, more: str = "", prompt: str = PROMPT, count: int = 30) -> str:
    (folder / f"{name}.py").write_text(SUMS.format(more=more, prompt=prompt, count=count))
    return name


@needs
def test_prompts_are_tasks_and_rewards_are_weighed(folder: Path) -> None:
    """2 for a right answer and a half for fewer than 3 letters; the working is no part of the answer."""
    env = VerifiersTasks(saved(folder, "sums_plain"))
    task = env.task(0)
    assert [message.role for message in task.messages] == ["system", "user"] and task.source == "verifiers/sums_plain"
    right = str(int(task.messages[1].content.partition("+")[0]) + 1)
    for completion, paid in ((right, 2.5), (f"<think>so it is</think>{right}", 2.5), ("0", 0.5), ("12345", 0.0)):
        (answer,) = replied(env, task, [completion])
        assert answer.done and answer.reward == paid
    with pytest.raises(ConfigurationError, match=r"reward its tasks with Earned"):
        env.check(task, right)


@needs
def test_sides_never_meet_and_all_tasks_are_there(folder: Path) -> None:
    env = VerifiersTasks(saved(folder, "sums_sides"), heldout_share=0.3)
    train, heldout = env.num_tasks(), env.num_tasks(heldout=True)
    sides = [{env.task(index, side).id for index in range(count)} for side, count in ((False, train), (True, heldout))]
    assert train + heldout == 30 and heldout > 2 and [*map(len, sides)] == [train, heldout] and not sides[0] & sides[1]
    again = pickle.loads(pickle.dumps(env))
    assert again == env and again.task(3) == env.task(3)


@needs
@pytest.mark.parametrize(
    ("more", "prompt", "wanted"),
    [
        ("", "None", "a user who speaks first"),
        ("\n    NEEDS_CONTAINER = True", PROMPT, "a sandbox"),
        ("\n    async def setup(self, trace, runtime): pass", PROMPT, "a sandbox"),
        ("\n    async def finalize(self, trace, runtime): pass", PROMPT, "a sandbox"),
        ("\n    @vf.reward\n    async def ran(self, trace, runtime): return 1.0", PROMPT, "a sandbox"),
        ("\n    @classmethod\n    def toolsets(cls, config): return [1]", PROMPT, "tools"),
    ],
)
def test_what_needs_more_than_a_completion_is_refused(folder: Path, more: str, prompt: str, wanted: str) -> None:
    name = saved(folder, f"sums_{abs(hash((more, prompt)))}", more, prompt)
    with pytest.raises(ConfigurationError, match=f"need {wanted}, and an environment of one completion"):
        VerifiersTasks(name)


@needs
def test_what_is_not_there_is_said(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot load taskset no_such_set"):
        VerifiersTasks("no_such_set")
    with pytest.raises(ConfigurationError, match="has no tasks"):
        VerifiersTasks(saved(folder, "sums_none", count=0))


@needs
def test_by_name_it_runs_in_a_process_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = saved(folder, "sums_apart")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    (env,) = parse_envs(f"verifiers/{name}")
    assert env == Apart(VerifiersTasks(name)) and isinstance(env, Apart)

    async def paid() -> float | None:
        episode = env.episode()
        await episode.reset(env.task(0))
        answer = await episode.step(Message("assistant", "0"))
        await episode.close()
        await env.close()
        return answer.reward

    assert asyncio.run(paid()) == 0.5
