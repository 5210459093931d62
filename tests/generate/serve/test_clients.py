"""Real clients play a tool task through the endpoint: every token they caused is in the rollout, as it was sampled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from strop.generate.policy import Policy
from tests.generate.serve.serving import MOST_TURNS, PARAMETERS, dialogue, furthest, pocket, served, store_of, task_of

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}
    for name, schema in PARAMETERS.items()
]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return pocket()


def played(policy: Policy, work: Any, index: int) -> Any:
    """Plays one task; checks what holds for every client."""
    task = task_of(index)
    talk = dialogue(policy, task, index)
    answer, _ = served(lambda address, key: work(address, key, task), talk)
    assert furthest(talk) < 1e-5, "what the trainer would read is what the policy read"
    return answer, talk, task


async def chat(address: str, key: str, task: Any, is_streamed: bool = False) -> str:
    client, use = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0), store_of(task)
    messages: list[Any] = [{"role": m.role, "content": m.content} for m in task.messages]
    for _ in range(MOST_TURNS):
        if is_streamed:
            async with client.chat.completions.stream(model="policy", messages=messages, tools=TOOLS) as stream:
                message = (await stream.get_final_completion()).choices[0].message
        else:
            made = await client.chat.completions.create(model="policy", messages=messages, tools=TOOLS)
            message = made.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(exclude_none=True, exclude={"parsed", "reasoning_content"}))
        for call in message.tool_calls:
            given = json.loads(call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": use(call.function.name, given)})
    return ""


async def streamed_chat(address: str, key: str, task: Any) -> str:
    return await chat(address, key, task, is_streamed=True)


async def responses(address: str, key: str, task: Any) -> str:
    client, use = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0), store_of(task)
    tools: Any = [{"type": "function", "strict": False, **tool["function"]} for tool in TOOLS]
    items: list[Any] = [{"role": m.role, "content": m.content} for m in task.messages]
    for _ in range(MOST_TURNS):
        made = await client.responses.create(model="policy", input=items, tools=tools)
        calls = [item for item in made.output if item.type == "function_call"]
        if not calls:
            return str(made.output_text)
        items += [item.model_dump(exclude_none=True) for item in made.output]
        for call in calls:
            told = use(call.name, json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": told})
    return ""


async def followed(address: str, key: str, task: Any) -> str:
    """Streams, and names the answer before instead of sending it back."""
    client, use = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0), store_of(task)
    tools: Any = [{"type": "function", "strict": False, **tool["function"]} for tool in TOOLS]
    items: Any = task.messages[0].content
    before: Any = openai.omit if hasattr(openai, "omit") else openai.NOT_GIVEN
    for _ in range(MOST_TURNS):
        asked = {"model": "policy", "input": items, "tools": tools, "previous_response_id": before}
        async with client.responses.stream(**asked) as stream:
            made = await stream.get_final_response()
        calls = [item for item in made.output if item.type == "function_call"]
        if not calls:
            return str(made.output_text)
        before = made.id
        items = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": use(call.name, json.loads(call.arguments)),
            }
            for call in calls
        ]
    return ""


async def messages(address: str, key: str, task: Any, is_streamed: bool = False) -> str:
    client, use = anthropic.AsyncAnthropic(base_url=address, api_key=key, max_retries=0), store_of(task)
    tools: Any = [{"name": name, "description": "", "input_schema": schema} for name, schema in PARAMETERS.items()]
    said: list[Any] = [{"role": m.role, "content": m.content} for m in task.messages]
    for _ in range(MOST_TURNS):
        asked: dict[str, Any] = {"model": "policy", "max_tokens": 64, "messages": said, "tools": tools}
        if is_streamed:
            async with client.messages.stream(**asked) as stream:
                made = await stream.get_final_message()
        else:
            made = await client.messages.create(**asked)
        uses = [block for block in made.content if block.type == "tool_use"]
        if not uses:
            return "".join(block.text for block in made.content if block.type == "text")
        said.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in made.content]})
        results = [
            {"type": "tool_result", "tool_use_id": each.id, "content": use(each.name, dict(each.input))}
            for each in uses
        ]
        said.append({"role": "user", "content": results})
    return ""


async def streamed_messages(address: str, key: str, task: Any) -> str:
    return await messages(address, key, task, is_streamed=True)


@pytest.mark.parametrize("client", [chat, streamed_chat, responses, followed, messages, streamed_messages])
def test_a_client_plays_a_tool_task_in_one_context(policy: Policy, client: Any) -> None:
    answers, rights = [], 0
    for index in range(4):
        answer, talk, task = played(policy, client, index)
        answers.append(answer)
        rights += answer.strip().rpartition(">")[2] == str(json.loads(task.answer)["total"])
        assert sum(turn.fresh for turn in talk.turns) <= 1, "thoughts that a client drops open no new context"
        assert talk.served.turns == len(talk.turns) and talk.served.branches == 0
        if len(talk.turns) > 1:
            assert talk.turns[1].told and talk.turns[1].told[0].role == "tool"
    assert rights >= 1, answers


def test_all_clients_get_the_same_tokens(policy: Policy) -> None:
    """The same rollout through each dialect, whole or streamed."""
    said = [
        [turn.tokens.tolist() for turn in played(policy, client, 1)[1].turns]
        for client in (chat, streamed_chat, responses, followed, messages, streamed_messages)
    ]
    assert len(said[0]) > 1 and all(each == said[0] for each in said)
