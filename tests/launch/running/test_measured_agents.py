"""Held-out accuracy is about what acts: the run's own agent and tools, and no help that knows the answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from strop.environments.bundled.ask_for_help import HelpOffered
from strop.environments.bundled.guess import Guess
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.needs import DEMONSTRATIONS, EnvNeed
from strop.environments.tools.toolbox import Toolbox
from strop.errors import RewardError
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.rollout import EnvironmentFailed
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.agent.playpen.environment import Refereed
from strop.roles import Agent, Dialogue, Environment, Episode
from strop.types import Message, Task

SIZES = {"steps": 0, "groups_per_step": 2, "group_size": 2, "max_tokens": 24, "heldout_tasks": 2}


@dataclass(frozen=True)
class CannotStart(Agent):
    """Agent whose program is not there."""

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        raise EnvironmentFailed("there is no program harness")


@dataclass(frozen=True)
class ShownTheWay(CannotStart):
    """Agent that takes demonstrations."""

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (DEMONSTRATIONS,)


def test_the_agent_of_the_run_is_measured_unless_it_is_shown_the_answer() -> None:
    plan = build(recipe_named("grpo"), {}).evaluation
    assert plan.of(Chat(5)).agent == Chat(5) and plan.of(CannotStart()).agent == CannotStart()
    assert plan.of(Demonstrate()).agent == Chat() and plan.of(ShownTheWay()).agent == Chat()
    assert replace(plan, agent=Chat(2)).of(Chat(5)).agent == Chat(2)


def test_recipes_are_measured_with_their_agents_and_tools() -> None:
    forks = build(recipe_named("arpo_agentic"), {})
    assert forks.evaluation.of(forks.agent).agent == forks.agent and forks.agent != Chat()
    tools = build(recipe_named("verltool"), {})
    assert all(isinstance(env, Toolbox) for env in tools.evaluation.measured(tools.envs))
    for name in ("sft", "ui_s1", "comas", "self_regulation"):
        run = build(recipe_named(name), {})
        assert run.evaluation.of(run.agent).agent == Chat(), name


def test_an_agent_that_cannot_start_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    run = replace(build(recipe_named("grpo"), SIZES), agent=CannotStart())
    with pytest.raises(
        RewardError, match=r"all 2 held-out rollouts failed, so nothing is measured: .*no program harness"
    ):
        launch(run, tmp_path, "run")


def test_a_program_that_is_not_there_is_no_accuracy(tmp_path: Path) -> None:
    run = build(recipe_named("polar"), SIZES | {"command": "python nowhere.py", "isolation": "process"})
    with pytest.raises(RewardError, match=r"all 2 held-out rollouts failed, so nothing is measured: .*nowhere\.py"):
        launch(run, tmp_path, "run")


def played(env: Environment, *completions: str) -> float:
    """What an episode pays for these completions, or for its own demonstrations."""

    async def play() -> float:
        episode = env.episode()
        await episode.reset(env.task(0, heldout=True))
        for number in range(12):
            said = Message("assistant", completions[number]) if completions else episode.demonstrate()  # type: ignore[attr-defined]
            if (answer := await episode.step(said)).done:
                return answer.reward or 0.0
        return 0.0

    return asyncio.run(play())


def test_held_out_tasks_are_solved_without_help() -> None:
    run = build(recipe_named("self_regulation"), {})
    (trained,), (measured,) = run.envs, run.evaluation.measured(run.envs)
    assert (
        isinstance(trained, HelpOffered)
        and isinstance(measured, HelpOffered)
        and (trained.most, measured.most) == (3, 0)
    )
    assert played(replace(trained, most=12), *("help",) * 12) == 1.0, "who may always ask is always right"
    assert played(measured, *("help",) * 12) == 0.0


@pytest.mark.parametrize("env", [KeyValue(2), Guess(2)])
def test_a_game_is_won_by_its_own_demonstration(env: Environment) -> None:
    assert played(Refereed(env)) == 1.0
    assert played(Refereed(env), "hm", *("",) * 11) == 0.0, "which is no move"


def test_what_is_searched_on_held_out_tasks_does_not_know_the_answer() -> None:
    run = build(recipe_named("zerosearch"), {})
    assert {type(env).__name__ for env in run.envs} == {"SimulatedSearch"}
    assert {type(env).__name__ for env in run.evaluation.measured(run.envs)} == {"Search"}
