"""The role of a tool: a name, what it is for, what it takes, and a call that answers with text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from strop.types import Task, Tool


class WrongCall(Exception):  # noqa: N818 (it says what happened)
    """Arguments that a tool can do nothing with: the policy's own mistake, which it is told."""


class Instrument(Protocol):
    """What can the policy use? A call answers, or raises `WrongCall`; whatever else it raises fails the rollout."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def description(self) -> str: ...
        @property
        def parameters(self) -> str: ...  # JSON schema of its arguments, as text

    async def call(self, arguments: dict[str, Any]) -> str: ...

    def own(self) -> Instrument:
        """The one that a rollout uses: another one for each, where calls leave something behind."""
        return self

    def use(self, task: Task) -> dict[str, Any] | None:
        """Arguments that help with a task, for demonstrations; None: it knows none."""
        return None

    async def release(self) -> None:
        """The rollout that `own` was asked for has ended: leave nothing of it behind."""
        return None


def offered(tool: Instrument) -> Tool:
    """As tasks show it."""
    return Tool(tool.name, tool.description, tool.parameters)
