"""Train/held-out split of tasks: how environments draw a side, and the one rule of what is held out."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Task

HELDOUT_ONE_IN = 10
_MOST_TRIES = 20_000


def is_heldout(text: str) -> bool:
    """Which side a text is on; the same on every machine, in every environment and for every seed."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % HELDOUT_ONE_IN == 0


def prompt_of(task: Task) -> str:
    """What is asked: the first thing the user says, so that a later "try again" changes nothing."""
    return next(message.content for message in task.messages if message.role == "user")


def asked_by(task: Task) -> str:
    """What is asked, with the names of its pictures: the same question about another picture is another one."""
    return "\n".join([prompt_of(task), *_pictures(task)])


def _pictures(task: Task) -> list[str]:
    return [picture.digest for message in task.messages for picture in message.images]


def whole_prompt(task: Task) -> str:
    """All messages of a task, by which rows of tables are told apart."""
    said = [f"{message.role}: {message.content.strip()}" for message in task.messages]
    return "\n".join([*said, *_pictures(task)])


@dataclass
class HeldOutSide:
    """Held-out side of environments: the rule for everyone who brings tasks, be it samplers, generators or peers.

    A finite environment holds out the tasks of its held-out side, in whatever environment they come up again; one
    without an end decides by the hash of the prompt.
    """

    envs: Sequence[Environment] = ()
    ids: frozenset[str] = frozenset()  # of tasks that are measured

    def has(self, task: Task) -> bool:
        """Whether a task is measured, or one of the held-out tasks of a finite environment, word for word."""
        return task.id in self.ids or whole_prompt(task) in self._rows

    def holds_out(self, task: Task) -> bool:
        """Whether a task that no environment of this run has drawn is on the held-out side, or asks what one asks."""
        asked = asked_by(task).strip()
        return self.has(task) or asked in self._questions or (self._is_split and is_heldout(asked))

    @cached_property
    def _tasks(self) -> list[Task]:
        """Of finite environments; built once, since there may be as many as there are tasks."""
        places = ((env, place) for env in self.envs for place in range(env.num_tasks(heldout=True) or 0))
        return [env.task(place, heldout=True) for env, place in places]

    @cached_property
    def _rows(self) -> frozenset[str]:
        return frozenset(map(whole_prompt, self._tasks))

    @cached_property
    def _questions(self) -> frozenset[str]:
        """What they ask last, behind examples of a prompt."""
        return frozenset("\n".join([task.messages[-1].content.strip(), *_pictures(task)]) for task in self._tasks)

    @cached_property
    def _is_split(self) -> bool:
        """Whether an environment without an end is among them, where the text itself decides its side."""
        return any(env.num_tasks(heldout=True) is None for env in self.envs)


def draw(key: str, heldout: bool, make: Callable[[random.Random], Task]) -> Task:
    """The first task of the wanted side in the stream that `key` names."""
    stream = random.Random(f"{key}/{'heldout' if heldout else 'train'}")
    for _ in range(_MOST_TRIES):
        task = make(stream)
        if is_heldout(asked_by(task)) == heldout:
            return task
    raise ConfigurationError(
        f"no {'held-out' if heldout else 'train'} task among {_MOST_TRIES} draws for {key}: the environment has too "
        f"few tasks"
    )


def require_level(name: str, level: int, lowest: int, highest: int) -> None:
    """Refuse a level the environment does not have."""
    if not lowest <= level <= highest:
        raise ConfigurationError(f"{name} has levels {lowest} to {highest}, got {level}")


def not_trained_on(tasks: Sequence[Task], envs: Sequence[Environment]) -> list[str]:
    """Why tasks of a former run are none of this run's train tasks: a sentence for each environment that lacks some."""
    by_name: dict[tuple[str, int], list[Task]] = {}
    for task in tasks:
        by_name.setdefault((task.source, task.level), []).append(task)
    served = {(env.name, env.level): env for env in envs}
    found = []
    for (name, level), asked in by_name.items():
        if (name, level) not in served:
            found.append(f"{name}:{level} is not among the environments of this run")
        elif lacking := _lacking(served[name, level], asked):
            shown = " ".join(prompt_of(lacking[0]).split())[:60]
            found.append(
                f"{len(lacking)} of its {len(asked)} tasks are no train tasks of {name} here, such as {shown!r}"
            )
    return found


def _lacking(env: Environment, tasks: Sequence[Task]) -> list[Task]:
    """Those that are none of its train tasks, where their number is finite."""
    if (size := env.num_tasks()) is None:
        return []
    known = {env.task(place).id for place in range(size)}
    return [task for task in tasks if task.id not in known]
