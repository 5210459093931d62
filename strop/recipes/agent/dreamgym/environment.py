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
from strop.filter.judges.batch_ask import unread
from strop.filter.judges.readers import plain
from strop.recipes.agent.dreamgym.experiences import Experiences
from strop.roles import Asks, Environment, Episode, LLMClient
from strop.text.llm_prompt import json_object, question
from strop.types import Message, Observation, Sampling, Task

ASKED = (
    "What does the environment answer to the completion? Think, then write state: and its words; or, if the completion "
    "ends the task, "
    "reward: 1 where the task is solved and reward: 0 where it is not."
)
_STATE = re.compile(r"^\s*(?:next )?state:\s*(\S.*)\Z", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_REWARD = re.compile(r"^\s*reward:\s*(0(?:\.\d{1,4})?|1(?:\.0{1,4})?)\s*$", re.MULTILINE | re.IGNORECASE)


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
            self.env.prompt,
            task=prompt_of(self._task),
            ideas=_listed(self._history),
            other=_listed(similar),
            completion=completion.content,
        )
        sampling = Sampling(temperature=0.0, max_tokens=self.env.tokens)
        said = await self.env.model.ask([Message("user", text)], sampling, len(self._history))
        read = answer_in(said)
        if read is None:
            raise unread(self.env.model, said, "the experience model says neither a state nor a reward:")
        if isinstance(read, float):
            return Observation(done=True, reward=read)
        self._history.append((completion.content, read))
        return Observation((Message("tool", read),), done=len(self._history) >= self.env.turns, reward=0.0)


def answer_in(said: str) -> str | float | None:
    """The words of the next state, on as many lines as they take, or the reward that ends the episode; None: neither.

    As `state: ...` or `**Reward:** 1` behind any thoughts, or as a JSON object.
    """
    spoken = plain(said)
    found = {str(name).lower(): value for name, value in json_object(spoken).items()}
    reward, state = found.get("reward"), found.get("state")
    if isinstance(reward, int | float) and 0 <= reward <= 1 and not state:
        return float(reward)
    if isinstance(state, str):
        return state
    if ended := _REWARD.search(spoken):
        return float(ended.group(1))
    words = _STATE.search(spoken)
    return words.group(1).strip() if words else None


def _listed(transitions: list[tuple[str, str]]) -> str:
    return "\n".join(f"{done} -> {followed}".replace("\n", " ") for done, followed in transitions)


@dataclass(frozen=True)
class Dreamed(Around, Asks):
    """Simulated version of an environment, which itself serves only tasks and `seeds` demonstrations for the memory."""

    model: LLMClient
    memory: Experiences
    seeds: int = 16  # demonstrations in the real world that the memory begins with
    turns: int = 8  # most answers of a rollout
    tokens: int = 1024  # most tokens of an answer of the experience model, thoughts included
    prompt: str = ASKED  # what the experience model is asked, below task, actions and similar transitions

    is_inline: ClassVar[bool] = True
    pays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.seeds < 0 or self.turns < 1:
            raise ConfigurationError(f"Dreamed needs seeds >= 0 and turns >= 1, got {self.seeds} and {self.turns}")

    def episode(self) -> DreamedEpisode:
        return DreamedEpisode(self)

    async def try_clients(self, task: Task) -> None:
        episode = DreamedEpisode(self)
        episode._task, episode._history = task, []
        await episode.step(Message("assistant", "I begin."))

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
