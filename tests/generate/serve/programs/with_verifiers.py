"""verifiers: its rollout, its proxy and its eval client around a loop of ours, since its own loops need `uv`."""

import asyncio
import json
import os

import store
from openai import AsyncOpenAI
from verifiers.v1 import Agent, AgentConfig, EvalClientConfig, Harness, HarnessConfig, Task, TaskData
from verifiers.v1.runtimes import ProgramResult, SubprocessConfig

_KEY = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
_BOTH = {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": "get", "description": "", "parameters": _KEY}},
    {"type": "function", "function": {"name": "set", "description": "", "parameters": _BOTH}},
]


class Loop(Harness):
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, tool_interception_url=None):
        client, messages = AsyncOpenAI(base_url=endpoint, api_key=secret), [{"role": "user", "content": data.prompt}]
        for _ in range(store.MOST_TURNS):
            made = await client.chat.completions.create(model=ctx.model, messages=messages, tools=TOOLS)
            message = made.choices[0].message
            if not message.tool_calls:
                break
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                told = vars(store)[call.function.name](**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
        return ProgramResult(0, message.content or "", "")


async def main():
    where = EvalClientConfig(base_url=os.environ["OPENAI_BASE_URL"], api_key_var="OPENAI_API_KEY")
    agent = Agent(
        AgentConfig(model="policy", client=where, harness=HarnessConfig(id="null"), runtime=SubprocessConfig())
    )
    agent.harness = Loop(HarnessConfig(id="null"))
    trace = await agent.run(Task(TaskData(prompt=store.TASK)))
    assert not trace.errors, trace.errors
    store.finish(trace.last_completion)


asyncio.run(main())
