"""An episode takes each call at its time alone: what was paid when the episode was done is final."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strop.errors import EpisodeError
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.rollout import EnvironmentFailed, Guarded
from strop.recipes.agent.stepagent import OneDemonstration
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Observation, Outcome, Start, Task
from tests.generate.talking import TASK
from tests.generate.test_rollout import Echo, played

RIGHT, WRONG = Message("assistant", TASK.answer), Message("assistant", "2")


@dataclass
class Slow(Echo):
    """Answers when it is let."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def step(self, completion: Message) -> Observation:
        await self.go_on.wait()
        return await super().step(completion)


def run_of(inner: Echo) -> tuple[Guarded, Echo]:
    return Guarded(inner, "a", seconds=5.0), inner


def test_no_step_is_taken_before_reset_after_done_or_after_close() -> None:
    async def main() -> None:
        episode, inner = run_of(Echo())
        with pytest.raises(EpisodeError, match="not reset yet"):
            await episode.step(RIGHT)
        await episode.reset(TASK)
        assert not (await episode.step(WRONG)).done
        with pytest.raises(EpisodeError, match="no reset"):
            await episode.reset(TASK)
        assert (await episode.step(RIGHT)).reward == 1.0
        for again in (RIGHT, WRONG):
            with pytest.raises(EpisodeError, match="final"):
                await episode.step(again)
        await episode.close()
        await episode.close()
        with pytest.raises(EpisodeError, match="closed"):
            await episode.step(RIGHT)
        assert inner.calls == ["reset", "step 2", "step 4", "close"], "the episode heard nothing of the others"

    asyncio.run(main())


def test_steps_are_taken_one_by_one() -> None:
    async def main() -> None:
        episode, inner = run_of(slow := Slow())
        await episode.reset(TASK)
        first = asyncio.create_task(episode.step(RIGHT))
        await asyncio.sleep(0)
        for _ in range(3):
            with pytest.raises(EpisodeError, match="has not returned"):
                await episode.step(RIGHT)
        slow.go_on.set()
        assert (await first).reward == 1.0 and inner.calls == ["reset", "step 4"]

    asyncio.run(main())


def test_an_answer_that_comes_after_the_end_pays_nothing() -> None:
    async def main() -> None:
        episode, _ = run_of(slow := Slow())
        await episode.reset(TASK)
        late = asyncio.create_task(episode.step(RIGHT))
        await asyncio.sleep(0)
        await episode.close()
        slow.go_on.set()
        with pytest.raises(EpisodeError, match="closed"):
            await late

    asyncio.run(main())


@pytest.mark.parametrize("where", ["reset", "step 2"])
def test_an_episode_that_failed_is_not_asked_again(where: str) -> None:
    async def main() -> None:
        episode, _ = run_of(Echo(broken={where: OSError("gone")}))
        with pytest.raises(EnvironmentFailed):
            await episode.reset(TASK)
            await episode.step(WRONG)
        with pytest.raises(EpisodeError, match="failed"):
            await episode.step(RIGHT)

    asyncio.run(main())


class Insists(Agent):
    """Goes on after the end, and believes in what it is paid there."""

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        await episode.reset(task)
        return tuple([(await episode.step(await dialogue.completion())).reward or 0.0 for _ in range(3)])


def test_an_agent_that_goes_on_after_the_end_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match="final"):
        played(tmp_path, Echo(), ["2|", "4|", "4|"], Insists())


@pytest.mark.parametrize(("agent", "given"), [(Chat(), (1, 0)), (OneDemonstration(), (0, 1))])
def test_an_episode_that_ends_earlier_than_it_did_failed(tmp_path: Path, agent: Agent, given: Sequence[int]) -> None:
    turns = played(tmp_path, Echo(), [], Demonstrate()).turns
    rollout = played(tmp_path, Echo(), [], agent, Start("g-1", 9, tuple(turns[number] for number in given)))
    assert rollout.outcome is Outcome.FAILED and "of 2 replayed turns, where it had continued" in rollout.error
