"""Skill practice environments (TRACE, 2604.05336): the key-value store, with reward for the use of one skill.

Reading: the paper lets a model write an environment for each capability; these are written, one for each skill of
stores. Papers: trace
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

from strop.environments.bundled.keyvalue import KeyValue, KeyValueEpisode, parse
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError, nearest
from strop.recipes.agent.trace.store_skills import SKILLS, exercised
from strop.roles import Environment
from strop.types import Message, Task

_FURTHER = 1 << 32  # where to look for another task, beyond all that are asked for by their index


@dataclass
class PracticeEpisode(KeyValueEpisode):
    """Episode rewarded for the skill alone; whether the answer is right does not count."""

    skill: str = ""

    def _paid(self, completion: Message) -> float:
        answer = final_answer(completion.content)
        return float(exercised(prompt_of(self.task), self.known, self.store, answer)[self.skill] is True)


@dataclass(frozen=True)
class Practice(Environment):
    """Tasks of `keyvalue` in which a given skill can be used."""

    skill: str
    level: int
    seed: int = 0

    is_inline: ClassVar[bool] = True
    reads_calls: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.skill not in SKILLS:
            raise ConfigurationError(f"there is no skill {self.skill!r} to practise: {nearest(self.skill, SKILLS)}")
        KeyValue(self.level)  # which says what levels there are

    @property
    def name(self) -> str:
        return f"practice {self.skill}"

    def task(self, index: int, heldout: bool = False) -> Task:
        store = KeyValue(self.level, self.seed)
        tasks = (store.task(index + ahead * _FURTHER, heldout) for ahead in count())
        found = next(task for task in tasks if self.skill != "store" or parse(prompt_of(task))[1])
        return replace(found, source=self.name, id="")

    def episode(self) -> PracticeEpisode:
        return PracticeEpisode(self.skill)

    def check(self, task: Task, completion: str) -> float:
        return KeyValue(self.level, self.seed).check(
            task, completion
        )  # of the last completion, all that can be seen is the sum

    def answer(self, completion: str) -> str:
        return KeyValue(self.level, self.seed).answer(completion)
