"""claude-agent-sdk: what it brings talks to the endpoint, and the store is a server of tools within this."""

import asyncio
import os
import tempfile

import store
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool


def told(text):
    return {"content": [{"type": "text", "text": text}]}


@tool("get", "Look up a number.", {"key": str})
async def get(given):
    return told(store.get(**given))


@tool("set", "Store a number.", {"key": str, "value": str})
async def put(given):
    return told(store.set(**given))


async def main():
    home = tempfile.mkdtemp()
    options = ClaudeAgentOptions(
        system_prompt="Use tools.",
        tools=[],
        mcp_servers={"store": create_sdk_mcp_server("store", tools=[get, put])},
        allowed_tools=["mcp__store__get", "mcp__store__set"],
        model="policy",
        max_turns=store.MOST_TURNS,
        cwd=home,
        setting_sources=[],
        env={
            "HOME": home,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_BASE_URL": os.environ["ANTHROPIC_BASE_URL"],
            "ANTHROPIC_API_KEY": os.environ["ANTHROPIC_API_KEY"],
        },
    )
    async for message in query(prompt=store.TASK, options=options):
        if isinstance(message, ResultMessage):
            store.finish(message.result or "")


asyncio.run(main())
