"""A loop around litellm, whole or streamed."""

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it looks for prices on the network

import litellm
import store

_KEY = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
_BOTH = {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": "get", "description": "", "parameters": _KEY}},
    {"type": "function", "function": {"name": "set", "description": "", "parameters": _BOTH}},
]


def asked(messages, is_streamed):
    where = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
    made = litellm.completion("openai/policy", messages, tools=TOOLS, stream=is_streamed, **where)
    return (litellm.stream_chunk_builder(list(made), messages) if is_streamed else made).choices[0].message


def main(is_streamed):
    messages = [{"role": "user", "content": store.TASK}]
    for _ in range(store.MOST_TURNS):
        message = asked(messages, is_streamed)
        if not message.tool_calls:
            break
        messages.append(message)
        for call in message.tool_calls:
            told = vars(store)[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
    store.finish(message.content or "")


main(sys.argv[1:] == ["stream"])
