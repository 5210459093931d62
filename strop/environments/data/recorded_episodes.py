"""Recorded episodes as an environment: a JSONL file with a conversation per row, replayed step by step.

A row holds `messages` as chat templates have them (`role`, `content`, perhaps `tool_calls`), from the task to the last
message of the assistant, and perhaps `tools` and the `reward` that the episode earned. Rows without a reward are
successes; of the others those that reach the middle of the file's rewards. Only successes are replayed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from strop.environments.data.finite_set import FixedTasks
from strop.environments.data.hf_dataset import json_rows
from strop.environments.data.rows import columns_of, message_of, tools_of
from strop.environments.format.actions import action_in
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError, DataError
from strop.roles import Environment, Episode
from strop.types import FilePath, Message, Observation, Task

_EPISODE = "episode"  # column of a task: the recorded messages from the first one of the assistant on
_NEED = (
    'need a row for each episode: {"messages": [{"role": "user", "content": ...}, {"role": "assistant", "content": '
    '...}, ...], "reward": 1.0}, which ends with what the assistant said'
)


@dataclass(frozen=True)
class Recorded(Environment):
    """Environment of recorded successes: an episode goes on while completions act as the recording did, and pays 1 at
    its end; another action ends it with 0.
    """

    path: FilePath

    heldout_share: float = 0.1
    is_inline: ClassVar[bool] = True
    reads_calls: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not Path(self.path).is_file():
            raise ConfigurationError(f"there is no file {self.path} with recorded episodes: {_NEED}")

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @property
    def level(self) -> int:
        return 0

    def task(self, index: int, heldout: bool = False) -> Task:
        return self._tasks.task(index, heldout)

    def num_tasks(self, heldout: bool = False) -> int:
        return self._tasks.num_tasks(heldout)

    def episode(self) -> RecordedEpisode:
        return RecordedEpisode()

    def check(self, task: Task, completion: str) -> float:
        last = steps_of(task)[-1][0]
        return float(_is_same(Message("assistant", completion), last))

    def answer(self, completion: str) -> str:
        return final_answer(completion)

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}  # rows are read again where needed

    @cached_property
    def _tasks(self) -> FixedTasks:
        found = [(_task(row, place, self.name), _reward(row, place)) for place, row in json_rows(Path(self.path))]
        if not found:
            raise DataError(f"{self.path} holds no episodes: {_NEED}")
        paid = [reward for _, reward in found if reward is not None]
        if paid and max(paid) <= 0 and min(paid) == max(paid):
            raise DataError(f"every `reward` in {self.path} is {paid[0]:g}: no episode is a success to learn from")
        middle = (min(paid) + max(paid)) / 2 if paid else 0.0
        solved = [task for task, reward in found if reward is None or reward >= middle]
        return FixedTasks.split(solved, self.heldout_share, self.path)


@dataclass
class RecordedEpisode(Episode):
    """Episode of `Recorded`; it demonstrates what was recorded."""

    _steps: list[tuple[Message, tuple[Message, ...]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    _place: int = field(default=0, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self._steps, self._place = steps_of(task), 0

    async def step(self, completion: Message) -> Observation:
        wanted, answered = self._steps[self._place]
        if not _is_same(completion, wanted):
            return Observation(done=True, reward=0.0)
        self._place += 1
        is_last = self._place == len(self._steps)
        return Observation(answered, done=is_last, reward=float(is_last))

    def demonstrate(self) -> Message:
        return self._steps[self._place][0]

    async def close(self) -> None:
        pass


def _is_same(completion: Message, wanted: Message) -> bool:
    """Whether both do the same; of what is not one readable action, whether it is the same text and calls."""
    own, right = action_in(completion), action_in(wanted)
    said, recorded = ((each.content.strip(), each.tool_calls) for each in (completion, wanted))
    return own == right if right.is_formed else said == recorded


def steps_of(task: Task) -> list[tuple[Message, tuple[Message, ...]]]:
    """What the assistant said in each turn of a recorded task, and what was answered to it."""
    found = list[tuple[Message, tuple[Message, ...]]]()
    for message in map(message_of, columns_of(task)[_EPISODE]):
        if message.role == "assistant":
            found.append((message, ()))
        else:
            said, answered = found[-1]
            found[-1] = (said, (*answered, message))
    return found


def _task(row: Any, place: str, source: str) -> Task:
    messages = row.get("messages") if isinstance(row, Mapping) else None
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise DataError(f"{place}: there are no `messages`; {_NEED}")
    try:
        said, tools = [message_of(each) for each in messages], tools_of(row.get("tools"))
    except ValueError as error:
        raise DataError(f"{place}: {error}") from None
    roles = [message.role for message in said]
    if roles[-1] != "assistant" or roles[0] == "assistant":
        raise DataError(f"{place}: the first message is of the {roles[0]}, the last of the {roles[-1]}; {_NEED}")
    first = roles.index("assistant")
    columns = json.dumps({_EPISODE: list(messages[first:])}, sort_keys=True)
    return Task(tuple(said[:first]), final_answer(said[-1].content), source, tools=tools, columns=columns)


def _reward(row: Mapping[str, Any], place: str) -> float | None:
    reward = row.get("reward")
    is_number = isinstance(reward, int | float) and not isinstance(reward, bool) and math.isfinite(reward)
    if reward is not None and not is_number:
        raise DataError(f"{place}: `reward` must be a finite number, got {reward!r}")
    return None if reward is None else float(reward)
