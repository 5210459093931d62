"""Any world in processes of its own: one that hangs, crashes or forks fails its attempt and nothing else.

A deadline alone cannot help against a world that blocks the event loop (`time.sleep`, a tight loop, a C extension) or
ends the process. One process serves one attempt at a time, is used again after an attempt that ended well, and is
killed with all it started after any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from strop.errors import ConfigurationError
from strop.processes.answers import NoAnswer, entries, number, shown
from strop.processes.child import Child
from strop.processes.foreign import answered, checked
from strop.processes.parts import packed
from strop.roles import Environment, World
from strop.types import Message, Observation, Task, ToolCall

_ITS_OWN = "a process of its own"
_LONGEST_ERROR = 500
_ROLES = ("system", "user", "assistant", "tool")
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Apart(World):
    """The same tasks and checks; environments answer within `seconds` or are killed."""

    world: World
    seconds: float = 60.0
    _idle: list[Child] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.world.name

    @property
    def level(self) -> int:
        return self.world.level

    @property
    def pays(self) -> bool:
        return self.world.pays

    def task(self, index: int, heldout: bool = False) -> Task:
        return self.world.task(index, heldout)

    def check(self, task: Task, reply: str) -> float:
        return checked(self.world, task, reply)

    def answer(self, reply: str) -> str:
        return answered(self.world, reply)

    def num_tasks(self, heldout: bool = False) -> int | None:
        """How many different tasks there are; None where they are endless."""
        return self.world.num_tasks(heldout)

    def environment(self) -> Environment:
        return _Inside(self)

    async def lend(self) -> Child:
        """A process that holds the world and is nobody else's; `take_back` ends that."""
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            await process.kill()
        return await self._start()

    def take_back(self, process: Child) -> None:
        self._idle.append(process)

    async def close(self) -> None:
        """End all idle processes."""
        while self._idle:
            await self._idle.pop().kill()

    def __reduce__(self) -> Any:
        return Apart, (self.world, self.seconds)  # processes stay where they are

    async def _start(self) -> Child:
        world = packed(self.world, f"world {self.name}", _ITS_OWN)
        process = Child("strop.environments.inside")
        try:
            ready = (await process.ask({}, {"world": world})).head
            if "error" in ready:
                raise ConfigurationError(
                    f"world {self.name} cannot be loaded in {_ITS_OWN}: {ready['error']}; "
                    "define it in a file that can be imported there"
                )
            entries(ready, ready=bool)
        except BaseException:
            await process.kill()
            raise
        return process


@dataclass
class _Inside(Environment):
    """The parent's end of one environment."""

    home: Apart
    _process: Child | None = field(default=None, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self._process = await self.home.lend()
        await self._ask("reset", task, _nothing)

    async def step(self, reply: Message) -> Observation:
        return await self._ask("step", reply, _observation)

    async def close(self) -> None:
        if self._process is None:
            return
        is_alone = await self._ask("close", None, _is_alone)
        process, self._process = self._process, None
        if is_alone:
            self.home.take_back(process)
        else:
            await process.kill()  # and with it what the world left running

    async def _ask(self, verb: str, subject: Task | Message | None, read: Callable[[dict[str, Any]], _Read]) -> _Read:
        """An answer that is not as it should be, or a cancellation, ends the process."""
        if self._process is None:
            raise NoAnswer("its process is gone")
        try:
            question = {"subject": packed(subject, f"a {type(subject).__name__}", _ITS_OWN)}
            answer = (await self._process.ask({"verb": verb}, question, self.home.seconds)).head
            if "error" in answer:
                raise NoAnswer(str(answer["error"])[:_LONGEST_ERROR])
            return read(answer)
        except BaseException:
            process, self._process = self._process, None
            await process.kill()
            raise


def _nothing(answer: dict[str, Any]) -> None:
    entries(answer)


def _is_alone(answer: dict[str, Any]) -> bool:
    return entries(answer, is_alone=bool)["is_alone"] is True


def _observation(answer: dict[str, Any]) -> Observation:
    plain = entries(entries(answer, observation=dict)["observation"], messages=list, done=bool, reward=object)
    reward = None if plain["reward"] is None else number(plain["reward"])
    return Observation(tuple(_message(each) for each in plain["messages"]), plain["done"], reward)


def _message(plain: Any) -> Message:
    found = entries(plain, role=str, content=str, tool_calls=list)
    if found["role"] not in _ROLES:
        raise NoAnswer(f"answered a message of role {shown(found['role'])}, need one of {', '.join(_ROLES)}")
    calls = (entries(call, name=str, arguments=str) for call in found["tool_calls"])
    return Message(found["role"], found["content"], tuple(ToolCall(**call) for call in calls))
