"""Simulated environment (DreamGym, 2511.03773): an LLM predicts each observation from similar recorded transitions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.capabilities import Demonstrates, Learns, Remembers
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.demonstrations import demonstrates, demonstrating
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import unread
from strop.filter.judges.readers import plain
from strop.roles import Asks, Environment, Episode, LLMClient
from strop.text.llm_prompt import json_object, question
from strop.types import Group, Message, Metrics, Observation, Sampling, Task

_MOST = 4096  # transitions


@dataclass
class Experiences(Learns, Remembers):
    """Transitions (task, action, observation); those of a batch become visible at the next step, for determinism."""

    top: int = 3  # that are shown

    _kept: list[tuple[str, str, str]] = field(default_factory=list, init=False, repr=False, compare=False)
    _num_real: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.top < 0:
            raise ConfigurationError(f"Experiences needs top >= 0, got {self.top}")

    @property
    def is_empty(self) -> bool:
        return not self._kept

    def add(self, task: Task, action: str, followed: str, is_real: bool = False) -> None:
        """Beyond the most, the oldest that is not real is forgotten; where all are, the newest."""
        self._kept.insert(self._num_real if is_real else len(self._kept), (prompt_of(task), action, followed))
        self._num_real += is_real
        if len(self._kept) > _MOST:
            del self._kept[min(self._num_real, _MOST)]
            self._num_real = min(self._num_real, _MOST)

    def similar(self, task: Task, action: str) -> list[tuple[str, str]]:
        """Actions and what followed: those that share most words with the action, then with the task, newest first."""
        words, asked = set(_words(action)), set(prompt_of(task).split())

        def nearness(entry: tuple[int, tuple[str, str, str]]) -> tuple[float, float, int]:
            place, (prompt, done, _) = entry
            return _overlap(words, set(_words(done))), _overlap(asked, set(prompt.split())), place

        ranked = sorted(enumerate(self._kept), key=nearness, reverse=True)
        return [(done, followed) for _, (_, done, followed) in ranked[: self.top]]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        for rollout in (rollout for group in groups for rollout in group.scored):
            for turn, after in zip(rollout.turns, rollout.turns[1:], strict=False):
                if after.told:
                    self.add(rollout.task, turn.message.content, after.told[-1].content)
        new = float(len(self._kept) - self._num_real)
        return {"experiences_real": float(self._num_real), "experiences_new": new}

    def state(self) -> dict[str, Any]:
        return {"kept": [list(each) for each in self._kept], "real": self._num_real}

    def restore(self, state: dict[str, Any]) -> None:
        self._kept = [(str(prompt), str(done), str(followed)) for prompt, done, followed in state["kept"]]
        self._num_real = int(state["real"])


def _words(text: str) -> list[str]:
    return text.replace("<", " ").replace(">", " ").split()


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


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
        """Real experience, once; none where the environment has no demonstrations."""
        if self.memory.is_empty and demonstrates(self.inner.episode()):
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
