"""Agents of smolagents: one calls tools, one writes code that calls them."""

import os
import sys

import store
from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent, tool


def put(key: str, value: str) -> str:  # `set` is a function that code has already
    """Store a number.

    Args:
        key: what to store it under
        value: the number
    """
    return store.set(key, value)


model = OpenAIServerModel("policy", os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
kind = CodeAgent if "code" in sys.argv else ToolCallingAgent
agent = kind([tool(store.get), tool(put)], model, max_steps=store.MOST_TURNS, verbosity_level=0)
agent.prompt_templates["system_prompt"] = "Use tools, and final_answer."  # its own fills 10,000 characters
store.finish(str(agent.run(store.TASK)))
