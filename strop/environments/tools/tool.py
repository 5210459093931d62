"""Errors of tool calls, and the tool description shown to the policy."""

from __future__ import annotations

from strop.roles import Instrument
from strop.types import Tool


class WrongCall(Exception):  # noqa: N818 (it says what happened)
    """Invalid tool arguments: the policy's mistake, shown to it as an error."""


def offered(tool: Instrument) -> Tool:
    """As tasks show it."""
    return Tool(tool.name, tool.description, tool.parameters)
