"""Tool environment (VerlTool, 2509.01055): tool calls of a completion are executed; other completions go to `inner`.

Invalid calls return an error to the policy. A tool that crashes or times out fails the rollout; the VerlTool release
returns an error text instead and trains on it. Each rollout has its own instances of stateful tools and waits for no
other rollout. If the inner environment reads calls of its own, it gets the completions that call none of these tools.

Papers: verltool
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from strop.capabilities import ReadsCalls, inside
from strop.environments.format.demonstrations import demonstrating
from strop.environments.format.think_tags import final_answer
from strop.environments.tools.json_schema import arguments_of
from strop.environments.tools.tool import WrongCall, offered
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.roles import Episode, Instrument
from strop.types import Message, Observation, Task, ToolCall


class ToolFailed(Exception):  # noqa: N818 (it says what happened)
    """Crash or timeout of a tool."""


@dataclass(frozen=True)
class Toolbox(Around):
    """Tasks of `inner`, plus tools."""

    tools: tuple[Instrument, ...]
    longest: int = 512  # characters of an answer; of a longer one the middle is left out
    seconds: float = 10.0  # within which a call is answered

    reads_calls: ClassVar[bool] = True

    def __post_init__(self) -> None:
        names = [tool.name for tool in self.tools]
        if not names or len(set(names)) < len(names) or self.longest < 8 or not self.seconds > 0:
            raise ConfigurationError(
                "Toolbox needs tools of different names, longest >= 8 and seconds > 0, "
                f"got {', '.join(names) or 'none'}, {self.longest} and {self.seconds:g}"
            )

    def task(self, index: int, heldout: bool = False) -> Task:
        """With the id that its environment knows."""
        task = self.inner.task(index, heldout)
        return replace(task, tools=(*task.tools, *map(offered, self.tools)))

    def episode(self) -> ToolboxEpisode:
        is_read = bool(inside(self.inner, ReadsCalls))
        return ToolboxEpisode(self.inner.episode(), self.tools, self.longest, self.seconds, is_read)


@dataclass
class ToolboxEpisode(Episode):
    """Episode of `inner` with its tools."""

    inner: Episode
    tools: tuple[Instrument, ...]
    longest: int = 512
    seconds: float = 10.0
    hands_on: bool = False  # whether a completion that calls other tools than these is for the environment to read
    task: Task = field(init=False, repr=False, compare=False)
    heard: list[str] = field(default_factory=list, init=False, repr=False, compare=False)  # what tools answered
    _own: dict[str, Instrument] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self.task, self.heard, self._own = task, [], {tool.name: tool.own() for tool in self.tools}
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        is_other = self.hands_on and not any(call.name in self._own for call in completion.tool_calls)
        if not completion.tool_calls or is_other:
            return await self.inner.step(completion)
        answers = [await self._answer(call) for call in completion.tool_calls]
        self.heard += answers
        return Observation(tuple(Message("tool", answer) for answer in answers), done=False)

    async def close(self) -> None:
        for tool in self._own.values():
            await tool.release()
        await self.inner.close()

    def demonstrate(self) -> Message:
        """A call where a tool knows one that helps, then what the environment would say, without its working."""
        if not self.heard:
            for tool in self.tools:
                if (arguments := tool.use(self.task)) is not None:
                    return calling(tool, **arguments)
        shown = demonstrating(self.inner).demonstrate()
        return replace(shown, content=final_answer(shown.content)) if self.heard else shown

    async def _answer(self, call: ToolCall) -> str:
        try:
            return _shortened(await self._called(call), self.longest)
        except WrongCall as wrong:
            return _shortened(f"error: {wrong}", self.longest)

    async def _called(self, call: ToolCall) -> str:
        """What a tool says; its own failure is nobody's mistake, and no answer."""
        if call.name not in self._own:
            raise WrongCall(f"no call of {', '.join(map(_described, self.tools))}")
        tool = self._own[call.name]
        arguments = arguments_of(call.arguments, tool.parameters)
        deadline = asyncio.timeout(self.seconds)
        try:
            async with deadline:
                return await tool.call(arguments)
        except (WrongCall, ConfigurationError):
            raise  # what is configured wrongly stops the run
        except Exception as error:
            why = f"no answer within {self.seconds:g} s" if deadline.expired() else f"{type(error).__name__}: {error}"
            raise ToolFailed(f"tool {call.name}: {why}") from error


def calling(tool: Instrument, said: str = "", **arguments: Any) -> Message:
    """A completion that calls a tool, for demonstrations; `said` stands before the call."""
    return Message("assistant", said, (ToolCall(tool.name, json.dumps(arguments)),))


def _described(tool: Instrument) -> str:
    return f"{tool.name}({', '.join(json.loads(tool.parameters).get('properties', {}))})"


def _shortened(text: str, longest: int) -> str:
    """Both ends of a text that is too long."""
    if len(text) <= longest:
        return text
    kept = longest - len(" ... ")
    return f"{text[: kept - kept // 2]} ... {text[len(text) - kept // 2 :]}"
