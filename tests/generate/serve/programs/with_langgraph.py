"""An agent of langgraph, as langchain builds it."""

import sys

import store
from langchain.agents import create_agent
from langgraph.errors import GraphRecursionError

if "anthropic" in sys.argv:
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="policy", max_tokens=64)
else:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="policy")
agent = create_agent(model, [store.get, store.set])
try:
    made = agent.invoke({"messages": [("user", store.TASK)]}, {"recursion_limit": 2 * store.MOST_TURNS})
    store.finish(made["messages"][-1].text)
except GraphRecursionError:
    store.finish("")
