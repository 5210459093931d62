"""Tools of an MCP server (Model Context Protocol) through its official SDK: `tools_of("http://localhost:8000/mcp")`.

Every call opens its own session, so that rollouts share only what the server itself keeps.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from strop.environments.tools.tool import WrongCall
from strop.errors import ConfigurationError
from strop.roles import Instrument


@dataclass(frozen=True)
class McpTool(Instrument):
    """Tool of an MCP server; its error results are shown to the policy, a lost connection fails the rollout."""

    server: Any  # its address, or a server of the SDK in this process
    name: str
    description: str = ""
    parameters: str = "{}"

    async def call(self, arguments: dict[str, Any]) -> str:
        async with _client(self.server) as client:
            answer = await client.call_tool(self.name, arguments)
        text = "\n".join(part.text for part in answer.content if part.type == "text")
        if answer.is_error:
            raise WrongCall(text)
        return text


def tools_of(server: Any) -> tuple[McpTool, ...]:
    """All tools that a server offers now."""

    async def listed() -> Any:
        async with _client(server) as client:
            return (await client.list_tools()).tools

    with ThreadPoolExecutor(1) as thread:  # whoever asks may have a loop of its own
        found = thread.submit(asyncio.run, listed()).result()
    return tuple(McpTool(server, each.name, each.description or "", json.dumps(each.input_schema)) for each in found)


def _client(server: Any) -> Any:
    try:
        from mcp import Client
    except ImportError as error:
        raise ConfigurationError("tools of MCP servers need its SDK: pip install 'strop[mcp]'") from error
    return Client(server)
