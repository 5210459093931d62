"""Tools of an MCP server, in this process."""

from __future__ import annotations

import asyncio
import importlib.util
import json

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.tools.mcp import McpTool, tools_of
from strop.environments.tools.tool import WrongCall
from strop.environments.tools.toolbox import Toolbox
from strop.errors import ConfigurationError
from strop.types import Message, ToolCall

has_sdk = importlib.util.find_spec("mcp") is not None


@pytest.mark.skipif(has_sdk, reason="the SDK is installed")
def test_without_the_sdk_it_is_said_what_helps() -> None:
    with pytest.raises(ConfigurationError, match=r"pip install 'strop\[mcp\]'"):
        asyncio.run(McpTool("http://localhost:1/mcp", "add").call({}))
    episode = Toolbox(Arithmetic(1), (McpTool("http://localhost:1/mcp", "add"),)).episode()

    async def played() -> None:
        await episode.reset(Arithmetic(1).task(0))
        await episode.step(Message("assistant", "", (ToolCall("add", "{}"),)))

    with pytest.raises(ConfigurationError, match="need its SDK"):  # it is no failure of one rollout
        asyncio.run(played())


@pytest.mark.skipif(not has_sdk, reason="the SDK of MCP is not installed")
def test_tools_of_a_server_answer_in_a_toolbox() -> None:
    from mcp.server.mcpserver import MCPServer  # type: ignore[import-not-found]

    server = MCPServer("test")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        if a < 0:
            raise ValueError("none below zero")
        return a + b

    (tool,) = tools_of(server)
    assert (tool.name, tool.description) == ("add", "Add two numbers.")
    assert list(json.loads(tool.parameters)["properties"]) == ["a", "b"]
    env = Toolbox(Arithmetic(1), (tool,))

    async def played() -> list[str]:
        episode = env.episode()
        await episode.reset(env.task(0))
        calls = tuple(ToolCall("add", text) for text in ('{"a": 2, "b": 3}', '{"a": 2}', '{"a": -1, "b": 0}'))
        return [message.content for message in (await episode.step(Message("assistant", "", calls))).messages]

    said = asyncio.run(played())
    assert said[:2] == ["5", "error: missing b"] and said[2].startswith("error: ") and "none below zero" in said[2]
    with pytest.raises(WrongCall):
        asyncio.run(McpTool(server, "no such tool").call({}))
