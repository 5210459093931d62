"""Client of an environment worker process: start-up, requests, and parsing of responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from strop.errors import ConfigurationError, DataError
from strop.roles import Environment
from strop.storage.picture_store import picture_of
from strop.types import Message, Observation, Task, ToolCall
from strop.workers.child import Child
from strop.workers.pickled_parts import packed
from strop.workers.untrusted_answers import NoAnswer, entries, number, shown

_ITS_OWN = "a process of its own"
_LONGEST_ERROR = 500
_ROLES = ("system", "user", "assistant", "tool")
_Read = TypeVar("_Read")


class EndsHung:
    """Environment whose hung episodes are ended with their process, so that other checks can still be made."""

    seconds: float  # within which an episode answers


class EnvironmentRaised(NoAnswer):
    """Error raised by the episode; its worker process is still usable."""

    def __init__(self, text: str, is_spent: bool) -> None:
        super().__init__(text)
        self.is_spent = is_spent


async def started(env: Environment) -> Child:
    """A process that has loaded the environment."""
    part = packed(env, f"environment {env.name}", _ITS_OWN)
    process = Child("strop.environments.isolation.worker")
    try:
        ready = (await process.ask({}, {"env": part})).head
        if "error" in ready:
            raise ConfigurationError(
                f"environment {env.name} cannot be loaded in {_ITS_OWN}: {ready['error']}; "
                "define it in a file that can be imported there"
            )
        entries(ready, ready=bool)
    except BaseException:
        await process.kill()
        raise
    return process


async def asked(
    process: Child,
    head: dict[str, Any],
    subject: Task | Message | None,
    seconds: float,
    read: Callable[[dict[str, Any]], _Read],
) -> _Read:
    """What an episode in there says; `head` holds the verb and the episode's number."""
    question = {"subject": packed(subject, f"a {type(subject).__name__}", _ITS_OWN)}
    answer = (await process.ask(head, question, seconds)).head
    if "error" in answer:
        raise EnvironmentRaised(str(answer["error"])[:_LONGEST_ERROR], answer.get("is_spent") is True)
    return read(answer)


def nothing(answer: dict[str, Any]) -> None:
    entries(answer)


def demonstrated(answer: dict[str, Any]) -> str | None:
    """The demonstrated next completion; None if the episode has none."""
    said = entries(answer, shown=object)["shown"]
    if said is not None and not isinstance(said, str):
        raise NoAnswer(f"answered {shown(said)}, need a completion")
    return said


def is_alone(answer: dict[str, Any]) -> bool:
    """Whether the environment left no process running."""
    return entries(answer, is_alone=bool)["is_alone"] is True


def observation(answer: dict[str, Any]) -> Observation:
    """What the environment answered to a completion."""
    plain = entries(entries(answer, observation=dict)["observation"], messages=list, done=bool, reward=object)
    reward = None if plain["reward"] is None else number(plain["reward"])
    return Observation(tuple(_message(each) for each in plain["messages"]), plain["done"], reward)


def _message(plain: Any) -> Message:
    seen = {"images": list} if isinstance(plain, dict) and "images" in plain else {}
    found = entries(plain, role=str, content=str, tool_calls=list, **seen)
    if found["role"] not in _ROLES:
        raise NoAnswer(f"answered a message of role {shown(found['role'])}, need one of {', '.join(_ROLES)}")
    calls = (entries(call, name=str, arguments=str) for call in found["tool_calls"])
    try:
        images = tuple(map(picture_of, found.get("images", ())))
    except DataError as error:
        raise NoAnswer(f"answered a picture that cannot be read: {error}") from None
    return Message(found["role"], found["content"], tuple(ToolCall(**call) for call in calls), images=images)
