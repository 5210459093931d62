"""openai-agents: over chat completions or responses, alone or with a handoff."""

import sys

import store
from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled
from agents.exceptions import MaxTurnsExceeded, ModelBehaviorError

set_tracing_disabled(True)  # or it tells its own server what was done
set_default_openai_api("responses" if "responses" in sys.argv else "chat_completions")
clerk = Agent("clerk", model="policy", tools=[function_tool(store.get), function_tool(store.set)])
desk = Agent("desk", instructions="hand over", model="policy", handoffs=[clerk])
try:
    made = Runner.run_sync(desk if "handoff" in sys.argv else clerk, store.TASK, max_turns=store.MOST_TURNS)
    store.finish(made.final_output)
except (MaxTurnsExceeded, ModelBehaviorError):
    store.finish("")
