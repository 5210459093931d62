"""Environment in child processes, one episode per process: a hang, crash or fork affects its own rollout only.

A timeout alone does not help against an environment that blocks the event loop (`time.sleep`, a tight loop, a C
extension) or exits the process. A process serves one rollout at a time, is reused after a rollout that ended cleanly,
and is killed with all its children otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from strop.environments.isolation.client import EndsHung, asked, demonstrated, is_alone, nothing, observation, started
from strop.environments.wrappers.versioned import check_undated
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task
from strop.workers.child import Child
from strop.workers.foreign_checks import answered, checked
from strop.workers.untrusted_answers import NoAnswer

_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Apart(Environment, EndsHung):
    """Environment with the same tasks and checks, whose episodes answer within `seconds` or are killed."""

    env: Environment
    seconds: float = 60.0
    _idle: list[Child] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_undated(self.env, "Apart")

    @property
    def name(self) -> str:
        return self.env.name

    @property
    def level(self) -> int:
        return self.env.level

    @property
    def pays(self) -> bool:
        return self.env.pays

    def task(self, index: int, heldout: bool = False) -> Task:
        return self.env.task(index, heldout)

    def check(self, task: Task, completion: str) -> float:
        return checked(self.env, task, completion)

    def answer(self, completion: str) -> str:
        return answered(self.env, completion)

    def num_tasks(self, heldout: bool = False) -> int | None:
        """How many different tasks there are; None where they are endless."""
        return self.env.num_tasks(heldout)

    def episode(self) -> Episode:
        return InsideApart(self)

    async def lend(self) -> Child:
        """A process that holds the environment and is nobody else's; `take_back` ends that."""
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            await process.kill()
        return await started(self.env)

    def take_back(self, process: Child) -> None:
        self._idle.append(process)

    async def close(self) -> None:
        """End all idle processes."""
        while self._idle:
            await self._idle.pop().kill()

    def __reduce__(self) -> Any:
        return Apart, (self.env, self.seconds)  # processes stay where they are


@dataclass
class InsideApart(Episode):
    """Parent-side proxy of an episode in a child process."""

    home: Apart
    _process: Child | None = field(default=None, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self._process = await self.home.lend()
        await self._ask("reset", task, nothing)

    async def step(self, completion: Message) -> Observation:
        return await self._ask("step", completion, observation)

    async def shown(self) -> str | None:
        """The demonstrated next completion, if the episode in the child process has one."""
        return await self._ask("demonstrate", None, demonstrated)

    async def close(self) -> None:
        if self._process is None:
            return
        has_ended = await self._ask("close", None, is_alone)
        process, self._process = self._process, None
        if has_ended:
            self.home.take_back(process)
        else:
            await process.kill()  # and with it what the environment left running

    async def _ask(self, verb: str, subject: Task | Message | None, read: Callable[[dict[str, Any]], _Read]) -> _Read:
        """An answer that is not as it should be, or a cancellation, ends the process."""
        if self._process is None:
            raise NoAnswer("its process is gone")
        try:
            return await asked(self._process, {"verb": verb, "number": 0}, subject, self.home.seconds, read)
        except BaseException:
            process, self._process = self._process, None
            await process.kill()
            raise
