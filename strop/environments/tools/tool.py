"""Tools of environments: errors of calls, and how a tool is offered to the policy."""

from __future__ import annotations

from strop.roles import Instrument
from strop.types import Tool


class WrongCall(Exception):  # noqa: N818 (it says what happened)
    """Arguments that a tool can do nothing with: the policy's own mistake, which it is told."""


def offered(tool: Instrument) -> Tool:
    """As tasks show it."""
    return Tool(tool.name, tool.description, tool.parameters)
