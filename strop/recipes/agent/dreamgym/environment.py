"""Simulated environment (DreamGym, 2511.03773): an LLM predicts each observation from similar recorded transitions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from strop.capabilities import Demonstrates
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.demonstrations import demonstrating
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.recipes.agent.dreamgym.experiences import Experiences
from strop.roles import Environment, Episode, LLMClient
from strop.text.llm_prompt import question
from strop.types import Message, Observation, Sampling, Task

_ASKED = (
    "What does the environment answer to the completion? Think, then write state: and its words; or, if the completion "
    "ends the task, "
    "reward: 1 where the task is solved and reward: 0 where it is not."
)
_STATE, _REWARD = re.compile(r"^state: (.*)$", re.MULTILINE), re.compile(r"^reward: ([01])\b", re.MULTILINE)
_SAMPLING = Sampling(temperature=0.0, max_tokens=256)  # of the experience model
_SHOWN = 500  # characters of one entry


@dataclass
class DreamedEpisode(Episode):
    """Simulated episode; the LLM reads the task, the actions so far, and similar transitions."""

    env: Dreamed
    _task: Task = field(init=False, repr=False, compare=False)
    _history: list[tuple[str, str]] = field(default_factory=list, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        await self.env.seed_memory()
        self._task, self._history = task, []

    async def step(self, completion: Message) -> Observation:
        similar = self.env.memory.similar(self._task, completion.content)
        text = question(
            _ASKED,
            task=prompt_of(self._task),
            ideas=_listed(self._history),
            other=_listed(similar),
            completion=completion.content[:_SHOWN],
        )
        said = await self.env.model.ask([Message("user", text)], _SAMPLING, len(self._history))
        if ended := _REWARD.search(said):
            return Observation(done=True, reward=float(ended.group(1)))
        state = _STATE.search(said)
        if state is None:
            raise ValueError(f"the experience model says neither a state nor a reward: {said[:_SHOWN]!r}")
        self._history.append((completion.content, state.group(1)))
        return Observation((Message("tool", state.group(1)),), done=len(self._history) >= self.env.turns, reward=0.0)


def _listed(transitions: list[tuple[str, str]]) -> str:
    return "\n".join(f"{done[:_SHOWN]} -> {followed[:_SHOWN]}".replace("\n", " ") for done, followed in transitions)


@dataclass(frozen=True)
class Dreamed(Around):
    """Simulated version of an environment, which itself serves only tasks and `seeds` demonstrations for the memory."""

    model: LLMClient
    memory: Experiences
    seeds: int = 16  # demonstrations in the real world that the memory begins with
    turns: int = 8  # most answers of a rollout

    is_inline: ClassVar[bool] = True
    pays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.seeds < 0 or self.turns < 1:
            raise ConfigurationError(f"Dreamed needs seeds >= 0 and turns >= 1, got {self.seeds} and {self.turns}")

    def episode(self) -> DreamedEpisode:
        return DreamedEpisode(self)

    async def seed_memory(self) -> None:
        """Real experience, once."""
        if self.memory.is_empty:
            for index in range(self.seeds):
                await _recorded(self.inner, self.inner.task(index), self.memory)


async def _recorded(env: Environment, task: Task, memory: Experiences) -> None:
    episode = env.episode()
    shown: Demonstrates = demonstrating(episode)
    await episode.reset(task)
    while True:
        action = shown.demonstrate()
        answer = await episode.step(action)
        if answer.done:
            break
        memory.add(task, action.content, answer.messages[-1].content, is_real=True)
    await episode.close()
